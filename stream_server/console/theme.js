// Sets the theme before anything is drawn, so that a dark page does not flash white, and follows other tabs. Not a module, since those wait.
function showTheme() {
  try {
    const theme = localStorage.getItem("stream-server.theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
  } catch {
    // Storage may be closed to the page; the theme of the system is used then.
  }
}
showTheme();
addEventListener("storage", showTheme);
