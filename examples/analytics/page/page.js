// @ts-check
const SIGNS = { tags: "#", words: "", active: "@", mentioned: "@" };
const SVG = "http://www.w3.org/2000/svg";
const SHOWN_MINUTES = 60;

/** @param {[string, number]} row @param {string} sign */
function item([name, count], sign) {
  const line = document.createElement("li");
  const label = document.createElement("bdi");
  const posts = document.createElement("span");
  label.textContent = sign + name;
  posts.textContent = String(count);
  line.append(label, posts);
  return line;
}

/** @param {[string, number][]} minutes */
function bars(minutes) {
  const most = Math.max(1, ...minutes.map(([, posts]) => posts));
  const width = 600 / SHOWN_MINUTES;
  return minutes.map(([minute, posts], place) => {
    const bar = document.createElementNS(SVG, "rect");
    const height = (posts * 100) / most;
    const left = 600 - (minutes.length - place) * width;
    const box = { x: left, y: 100 - height, width: width * 0.8, height };
    for (const [name, value] of Object.entries(box)) bar.setAttribute(name, String(value));
    const title = document.createElementNS(SVG, "title");
    title.textContent = `${minute}: ${posts}`;
    bar.append(title);
    return bar;
  });
}

async function refresh() {
  const totals = /** @type {HTMLElement} */ (document.getElementById("totals"));
  try {
    const results = await (await fetch("results.json")).json();
    document.getElementById("minutes")?.replaceChildren(...bars(results.minutes));
    for (const [name, sign] of Object.entries(SIGNS)) {
      const rows = /** @type {[string, number][]} */ (results[name]);
      document.getElementById(name)?.replaceChildren(...rows.map((row) => item(row, sign)));
    }
    const lost = results.totals.missed ? `, ${results.totals.missed} lost` : "";
    totals.textContent = `${results.totals.posts} in all${lost}`;
  } catch {
    totals.textContent = "the program that serves this page does not answer";
  }
  setTimeout(refresh, 1000);
}

refresh();
