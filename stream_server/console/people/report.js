// @ts-check
/** The form that reports a status or a user to the administrators. */

import { fill, h } from "../dom.js";
import { form, formEnd, problemBox } from "../forms.js";
import { RetryKey } from "./site.js";

const REASONS = ["spam", "abuse", "harassment", "impersonation", "illegal", "other"];

/** Show the form in a slot. @param {import("./site.js").Site} site @param {any} what `status` or `user`, an id @param {Element} slot */
export function report(site, what, slot) {
  const key = new RetryKey();
  const reason = h("select", { name: "reason", "aria-label": "Reason" }, ...REASONS.map((each) => h("option", { value: each }, each)));
  const note = h("input", { name: "note", maxlength: "500", "aria-label": "Note", placeholder: "Note for the administrators", dir: "auto" });
  const parts = [h("strong", {}, "Report"), reason, note, problemBox(), formEnd("Send report", () => void fill(slot))];
  fill(slot, form({ class: "report-form" }, parts, async () => {
    const body = { ...what, reason: reason.value, note: note.value };
    await site.write("POST", "/v1/reports", body, key.of(body));
    fill(slot, h("p", { class: "muted", role: "status" }, "Thank you. The administrators see your report."));
  }));
  reason.focus();
}
