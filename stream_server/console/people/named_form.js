// @ts-check
/** What lists and groups share: the form with a name and a description, the tools of their owner, and their members. */

import { fill, h } from "../dom.js";
import { explain } from "../session.js";
import { RetryKey } from "./site.js";
import { deed, removableRow, userRow } from "./user_row.js";

/** @typedef {Record<string, any>} Json */

/**
 * Return the form. It keeps what was written if the server refuses it, and its key, so that a retry makes nothing twice.
 * @param {{title: string, button: string, given?: Json, more?: any, read?: (form: any) => Json,
 *   send: (body: Json, key: string) => Promise<any>, onCancel?: () => void}} options
 */
export function namedForm(options) {
  const { given = {} } = options;
  const key = new RetryKey();
  const problem = h("p", { class: "problem", role: "alert" });
  const form = h("form", { class: "card stack", "aria-label": options.title }, h("h2", {}, options.title),
    h("label", {}, "Name", h("input", { name: "name", maxlength: "50", required: true, dir: "auto", autocomplete: "off", value: given.name ?? "" })),
    h("label", {}, "Description", h("input", { name: "description", maxlength: "200", dir: "auto", autocomplete: "off", value: given.description ?? "" })),
    options.more, problem,
    h("div", { class: "row end" }, options.onCancel ? h("button", { type: "button", onclick: options.onCancel }, "Cancel") : null, h("button", { class: "primary" }, options.button)));
  form.addEventListener("submit", async (/** @type {Event} */ event) => {
    event.preventDefault();
    fill(problem);
    const value = (/** @type {string} */ name) => form.elements.namedItem(name).value;
    const body = { name: value("name"), description: value("description"), ...options.read?.(form) };
    try {
      await options.send(body, key.of(body));
    } catch (error) {
      fill(problem, explain(error));
    }
  });
  return form;
}

/** Return a button that shows a form beneath it, and hides it again. @param {string} label @param {(close: () => void) => Element} make */
export function unfold(label, make) {
  const slot = h("div", {});
  const button = h("button", { type: "button", "aria-expanded": "false" }, label);
  const close = () => {
    fill(slot);
    button.setAttribute("aria-expanded", "false");
  };
  button.addEventListener("click", () => {
    if (slot.childElementCount) return close();
    const form = make(close);
    fill(slot, form);
    button.setAttribute("aria-expanded", "true");
    form.querySelector("input")?.focus();
    return undefined;
  });
  return { button, slot };
}

/**
 * Return what the owner of a list or a group can do with it.
 * @param {import("./site.js").Site} site @param {"list" | "group"} kind @param {Json} found
 * @param {(title: string, button: string, given: Json, send: (body: Json, key: string) => Promise<any>, onCancel: () => void) => Element} makeForm
 */
export function ownerTools(site, kind, found, makeForm) {
  const path = `/v1/${kind}s/${found.id}`;
  const edit = unfold("Edit", (close) => makeForm(`Edit the ${kind}`, "Save", found, async (body, key) => {
    await site.write("PATCH", path, body, key);
    site.app.say("Saved");
    site.reload();
  }, close));
  const remove = deed(`Delete ${kind}`, async () => {
    site.app.undo.later({ text: `The ${kind} ${found.name} is deleted`, method: "DELETE", path, hides: `${kind}-${found.id}` });
    site.app.go(`#/people/${kind}s`);
  }, "danger");
  return h("div", {}, h("div", { class: "row" }, edit.button, remove), edit.slot);
}

/**
 * Return the members of a list or a group, with a button on those that may be removed, and their path.
 * @param {import("./page.js").Page} page @param {"list" | "group"} kind @param {Json} found @param {(user: Json) => boolean} mayRemove @param {string} empty
 */
export function memberRows(page, kind, found, mayRemove, empty) {
  const path = `/v1/${kind}s/${found.id}/members`;
  const rows = page.users(path, { label: "Members", empty }, (user) => (mayRemove(user)
    ? removableRow(page.site, user, "Remove", { text: `@${user.login} is removed`, path: `${path}/${user.id}` }) : userRow(user)));
  return { rows, path };
}
