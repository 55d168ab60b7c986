// @ts-check
/** The form in which a user edits the own profile. */

import { fill, h } from "../dom.js";
import { explain } from "../session.js";

/** @typedef {Record<string, any>} Json */

const FIELDS = [
  { name: "name", label: "Name", more: { maxlength: "50", required: true } },
  { name: "bio", label: "About you", more: { maxlength: "500" }, tag: "textarea" },
  { name: "place", label: "Place", more: { maxlength: "100" } },
  { name: "url", label: "Web address", more: { maxlength: "2048", placeholder: "https://", inputmode: "url" } },
  { name: "lang", label: "Language", more: { maxlength: "35", placeholder: "en" } },
];

/** @param {import("./site.js").Site} site @param {Json} user @param {(user: Json) => void} onSaved @param {() => void} onCancel */
export function editProfile(site, user, onSaved, onCancel) {
  const problem = h("p", { class: "problem", role: "alert" });
  const fields = FIELDS.map(({ name, label, more, tag }) => h("label", {}, label, h(tag ?? "input", { name, value: user[name] ?? "", dir: "auto", ...more })));
  const hidden = h("input", { type: "checkbox", name: "protected", checked: user.protected });
  const form = h("form", { class: "card stack", "aria-label": "Edit profile" }, ...fields,
    h("label", { class: "check" }, hidden, "Protected: only followers whom you approve read your posts"), problem,
    h("div", { class: "row end" }, h("button", { type: "button", onclick: onCancel }, "Cancel"), h("button", { class: "primary" }, "Save")));
  form.addEventListener("submit", async (/** @type {Event} */ event) => {
    event.preventDefault();
    fill(problem);
    try {
      onSaved(site.remember(await site.write("PATCH", "/v1/users/me", changes(form, user))));
    } catch (error) {
      fill(problem, explain(error));
    }
  });
  return form;
}

/** Return the members that differ; an emptied member is null. @param {any} form @param {Json} user */
function changes(form, user) {
  const found = /** @type {Json} */ ({});
  for (const { name } of FIELDS) {
    const value = form.elements.namedItem(name).value.trim();
    if (value !== (user[name] ?? "")) found[name] = value || (name === "name" ? value : null);
  }
  const hidden = form.elements.namedItem("protected").checked;
  if (hidden !== user.protected) found.protected = hidden;
  return found;
}
