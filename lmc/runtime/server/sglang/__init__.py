"""SGLang's native protocol, as its frontend speaks it."""
