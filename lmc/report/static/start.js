/** Starts a page that holds its data. */
app = new App(JSON.parse(byId("data").textContent ?? ""));
