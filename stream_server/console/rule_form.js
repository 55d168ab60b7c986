// @ts-check
// The form that saves a rule, or changes a saved one. It keeps what was entered for this user until that is done.

import { h } from "./dom.js";
import { form } from "./forms.js";
import { refusalOf, RuleField } from "./rule_field.js";
import { store, stored } from "./session.js";
import { Trial } from "./trial.js";

const CHECK_MS = 300; // after the last key

/** @param {any} app @param {{id?: string, rule?: string, tag?: string}} given a saved rule, or the parts of a new one @param {(saved: any) => void} onDone gets the rule as it is saved @param {() => void} [cancel] */
export function ruleForm(app, given, onDone, cancel) {
  const place = `stream-server.draft.${app.user.id}.rule.${given.id ?? given.rule ?? ""}`;
  const draft = JSON.parse(stored("sessionStorage", place) || "null") ?? given;
  const field = new RuleField(app.client, { label: "Rule", value: draft.rule, onChange: () => changed() });
  const tag = h("input", { name: "tag", maxlength: 120, dir: "auto", autocomplete: "off", value: draft.tag ?? "", oninput: () => changed() });
  const trial = new Trial(app);
  let timer = 0;
  function changed() {
    const rule = field.value.trim();
    store("sessionStorage", place, JSON.stringify({ rule: field.value, tag: tag.value }));
    trial.keepOnly(rule);
    clearTimeout(timer);
    timer = setTimeout(() => rule && refusalOf(app.client, rule).then((refusal) => refusal && rule === field.value.trim() && field.mark(refusal)), CHECK_MS);
  }
  const leave = (/** @type {any} */ saved) => (clearTimeout(timer), store("sessionStorage", place, ""), saved ? onDone(saved) : cancel?.());
  return form({ class: "stack rule-form", "aria-label": given.id ? "Change the rule" : "Save a rule" }, [
    field.element, h("label", {}, "Tag, which each match of the rule has", tag),
    h("div", { class: "row end" }, cancel && h("button", { type: "button", onclick: () => leave(null) }, "Cancel"),
      h("button", { type: "button", onclick: () => trial.show(field.value.trim()) }, "Try the past hour"), h("button", { class: "primary" }, given.id ? "Change the rule" : "Save the rule")),
    trial.root,
  ], async (_, key) => {
    const body = { rule: field.value.trim(), tag: tag.value };
    const headers = { "Idempotency-Key": key.of(body) };
    const saved = await field.told(async () => (given.id ? app.client.request("PUT", `/v1/rules/${given.id}`, { body, headers })
      : (await app.client.request("POST", "/v1/rules", { body: { rules: [body] }, headers })).rules[0]));
    if (saved) leave(saved);
  });
}

/** The window that saves a rule, from any view. @param {any} app @param {string} rule @param {string} [tag] */
export function saveRule(app, rule, tag = "") {
  const window = app.dialog("Save as rule", ruleForm(app, { rule, tag }, () => {
    window.close();
    app.say("The rule is saved.");
  }, () => window.close()), { wide: true });
}
