// @ts-check
/** The form that reports a status or a user to the administrators. */

import { fill, h } from "../dom.js";
import { explain } from "../session.js";
import { RetryKey } from "./site.js";

/** @typedef {Record<string, any>} Json */

const REASONS = ["spam", "abuse", "harassment", "impersonation", "illegal", "other"];

/** Show the form in a slot. @param {import("./site.js").Site} site @param {Json} what `status` or `user`, an id @param {Element} slot */
export function report(site, what, slot) {
  const key = new RetryKey();
  const reason = h("select", { name: "reason", "aria-label": "Reason" }, ...REASONS.map((each) => h("option", { value: each }, each)));
  const note = h("input", { name: "note", maxlength: "500", "aria-label": "Note", placeholder: "Note for the administrators", dir: "auto" });
  const problem = h("p", { class: "problem", role: "alert" });
  const form = h("form", { class: "report-form" }, h("strong", {}, "Report"), reason, note, problem,
    h("div", { class: "row end" }, h("button", { type: "button", onclick: () => fill(slot) }, "Cancel"), h("button", { class: "primary" }, "Send report")));
  form.addEventListener("submit", async (/** @type {Event} */ event) => {
    event.preventDefault();
    const body = { ...what, reason: reason.value, note: note.value };
    try {
      await site.write("POST", "/v1/reports", body, key.of(body));
      fill(slot, h("p", { class: "muted", role: "status" }, "Thank you. The administrators see your report."));
    } catch (error) {
      fill(problem, explain(error));
    }
  });
  fill(slot, form);
  reason.focus();
}
