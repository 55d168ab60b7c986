// @ts-check
/** All open streams of the server: whose they are, which are the largest, and a button that ends one. */

import { fill, h, isolate } from "../dom.js";
import { choice, explain, form, problemBox } from "../forms.js";
import { counted, streamText, userLink } from "../people/text.js";
import { bytes, grid, line, plain, since } from "./tables.js";

const REFRESH_MS = 10_000;
const PAGE = 20;
const SORTS = /** @type {Record<string, string>} */ ({ streams: "Streams", delivered: "Delivered", behind: "Entries behind", buffer: "Unsent", opened: "Open for" });
const ID = "ops-streams";

/** Whether somebody works in an element, so that it must not change: a button must not vanish under the hand. @param {Element} root */
export const isHeld = (root) => (root.matches(":hover") && matchMedia("(hover: hover)").matches) || root.contains(document.activeElement) || !(getSelection()?.isCollapsed ?? true);

export class Clients {
  /** @param {any} app */
  constructor(app) {
    this.app = app;
    this.asked = 0;
    /** What is shown; `pages` are the cursors of the pages up to the one on show. */
    this.view = { sort: "behind", by: "stream", user: "", pages: /** @type {string[]} */ ([]) };
    this.body = h("div", { class: "stack" });
    this.problem = problemBox();
    this.count = h("p", { class: "muted", role: "status" });
    const user = h("input", { "aria-label": "Streams of the user", placeholder: "username", autocapitalize: "none", autocomplete: "off", spellcheck: "false" });
    const find = form({ role: "search" }, [h("div", { class: "row nowrap" }, user, h("button", {}, "Show")), this.problem], () => this.change({ user: user.value.trim().replace(/^@/, ""), pages: [] }));
    const by = choice({ class: "row", "aria-label": "Rows" }, { stream: "Each stream", user: "By user" }, (by) => void this.change({ by, sort: by === "user" ? "streams" : "behind", pages: [] }));
    this.root = h("section", { class: "card ops-section" }, h("h2", { id: ID }, "Open streams"), h("div", { class: "row" }, find, by), this.body, this.count);
  }

  /** @param {Partial<Clients["view"]>} view */
  change(view) {
    this.view = { ...this.view, ...view };
    return this.load();
  }

  /** Ask again after a while, unless somebody works in the table. */
  async refresh() {
    if (!document.hidden && Date.now() - this.asked > REFRESH_MS && !isHeld(this.body)) await this.load();
  }

  async load() {
    const { view } = this;
    this.asked = Date.now();
    const query = { sort: view.sort, count: PAGE, user: view.user || null, before: view.pages.at(-1) };
    const [answer, error] = await this.app.client.request("GET", `/v1/admin/streams${view.by === "user" ? "/users" : ""}`, { query }).then((answer) => [answer], (error) => [null, error]);
    if (this.view !== view) return;
    fill(this.problem, error && explain(error, "user"));
    if (answer) return this.draw(answer);
    if (error.param !== "user") return; // the rows are the last that arrived
    this.asked = Infinity; // a user who is unknown is not asked for again
    for (const place of [this.body, this.count]) fill(place);
  }

  draw({ streams, users, next, total, complete }) {
    const { pages } = this.view;
    const lines = streams?.map((/** @type {any} */ one) => this.line(one)) ?? users.map((/** @type {any} */ one) => line([owner(one), plain(one.streams), ...sizes(one)]));
    const heads = streams ? ["User", ...this.heads(["delivered", "behind", "buffer", "opened"]), "Stream", "Worker", "Action"] : ["User", ...this.heads(["streams", "delivered", "behind", "buffer"])];
    const turn = (/** @type {string} */ label, /** @type {string[]} */ to, /** @type {boolean} */ isThere) => h("button", { type: "button", disabled: !isThere, onclick: () => this.change({ pages: to }) }, label);
    const pressed = this.body.contains(document.activeElement) ? document.activeElement?.textContent : null;
    const scrolled = this.body.querySelector(".ops-scroll")?.scrollLeft ?? 0;
    fill(this.body, lines.length ? grid(ID, heads, lines) : h("p", { class: "muted" }, "No such stream is open."),
      (next || pages.length > 0) && h("div", { class: "row" }, turn("Previous page", pages.slice(0, -1), pages.length > 0), turn("Next page", [...pages, next], next)));
    this.body.querySelector(".ops-scroll")?.scrollTo(scrolled, 0);
    if (pressed) [...this.body.querySelectorAll("button")].find((button) => button.textContent === pressed)?.focus({ preventScroll: true });
    const sum = `${counted(total, "stream")} of ${this.view.user ? `@${this.view.user}` : "all users"}, without waiting polls${complete ? "" : ", and some processes did not answer"}.`;
    if (this.count.textContent !== sum) fill(this.count, sum);
  }

  /** The heads of columns by which one sorts. @param {string[]} names */
  heads(names) {
    return names.map((name) => h("th", { scope: "col", "aria-sort": name !== this.view.sort ? null : name === "opened" ? "ascending" : "descending" },
      h("button", { type: "button", class: "link", onclick: () => this.change({ sort: name, pages: [] }) }, SORTS[name])));
  }

  line(one) {
    const { undo } = this.app;
    const hides = `stream-${one.connection}`;
    const who = one.user ? `of @${one.user.login ?? one.user.id}` : "of a reader token";
    const filter = streamText(one);
    const remove = { text: `The stream ${who} (${filter.length > 60 ? `${filter.slice(0, 60)}…` : filter}) ends: its client is told that an operator closed it.`, method: "DELETE", path: `/v1/admin/streams/${one.connection}`, hides };
    const end = h("button", { type: "button", class: "danger", "aria-label": `End the stream ${who}, ${filter}, ${one.connection}`, onclick: () => undo.later(remove) }, "End");
    return undo.tie(line([owner(one), ...sizes(one), since(one.opened, new Date().toISOString()),
      h("span", { class: "ops-wide", title: one.connection }, isolate(filter)), `${one.worker}, ${one.kind}`, end]), hides);
  }
}

const sizes = (/** @type {any} */ one) => [plain(one.delivered), plain(one.behind), bytes(one.buffer_bytes)];
const owner = (/** @type {any} */ { user, reader }) => (user ? (user.login ? userLink(user.login) : user.id) : h("span", {}, "reader ", h("code", {}, isolate(reader))));
