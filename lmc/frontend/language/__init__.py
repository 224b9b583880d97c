"""The language of programs: the handle ``s``, messages, options of ``gen``, spelt-out control flow."""
