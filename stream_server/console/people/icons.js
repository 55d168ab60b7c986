// @ts-check
/** The drawings of the people view. They are hidden from screen readers, since each button has a name. */

import { svg } from "../dom.js";

const PATHS = {
  home: "M4 11l8-7 8 7v9h-5v-6H9v6H4z",
  bell: "M6 17V11a6 6 0 0 1 12 0v6l2 2H4zM10 21h4",
  mail: "M3 6h18v12H3zM3 7l9 7 9-7",
  list: "M8 6h12M8 12h12M8 18h12M4 6h.01M4 12h.01M4 18h.01",
  group: "M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM2.5 20a6.5 6.5 0 0 1 13 0M16 4.5a3.5 3.5 0 0 1 0 6.5M18 14a6.5 6.5 0 0 1 3.5 6",
  knock: "M10 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM3 21a7 7 0 0 1 11-5.7M18 14v6M15 17h6",
  star: "M12 3.5l2.6 5.4 5.9.8-4.3 4.1 1 5.9-5.2-2.8-5.2 2.8 1-5.9L3.5 9.7l5.9-.8z",
  user: "M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4 21a8 8 0 0 1 16 0",
  shield: "M12 3l8 3v6c0 5-3.5 8-8 9-4.5-1-8-4-8-9V6z",
  reply: "M10 6L4 12l6 6M4 12h9a7 7 0 0 1 7 7",
  comment: "M4 5h16v11H11l-5 4v-4H4z",
  repost: "M17 3l4 4-4 4M21 7H7a4 4 0 0 0-4 4v1M7 21l-4-4 4-4M3 17h14a4 4 0 0 0 4-4v-1",
  quote: "M10 6H4v7h6zM10 12c0 4-2 5-5 6M20 6h-6v7h6zM20 12c0 4-2 5-5 6",
  heart: "M12 20s-8-5-8-11a4 4 0 0 1 8-1.5A4 4 0 0 1 20 9c0 6-8 11-8 11z",
  more: "M5 12h.5M12 12h.5M19 12h.5",
  trash: "M5 7h14M9 7V4h6v3M7 7l1 13h8l1-13M10 11v5M14 11v5",
  lock: "M6 11h12v9H6zM8.5 11V8a3.5 3.5 0 0 1 7 0v3",
  pin: "M12 21s-7-6-7-12a7 7 0 0 1 14 0c0 6-7 12-7 12zM12 9h.01",
  link: "M10 14l4-4M9 7l2-2a4.2 4.2 0 0 1 6 6l-2 2M15 17l-2 2a4.2 4.2 0 0 1-6-6l2-2",
  search: "M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14zM20 20l-4-4",
  left: "M15 5l-7 7 7 7",
  send: "M4 12l16-8-6 16-3-6z",
};

/** @typedef {keyof typeof PATHS} IconName */

/** @param {IconName} name */
export function drawing(name) {
  return svg("svg", { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true" }, svg("path", { d: PATHS[name] }));
}
