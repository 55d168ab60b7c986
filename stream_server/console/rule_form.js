// @ts-check
// The form that saves a rule, or changes a saved one. It keeps what was entered for this user until that is done.

import { h } from "./dom.js";
import { draftPlace, form, formEnd, refusal } from "./forms.js";
import { refusalOf, RuleField } from "./rule_field.js";
import { Trial } from "./trial.js";

const CHECK_MS = 300; // after the last key

/** @param {any} app @param {{id?: string, rule?: string, tag?: string}} given a saved rule, or the parts of a new one @param {(saved: any) => void} onDone gets the rule as it is saved @param {() => void} [cancel] */
export function ruleForm(app, given, onDone, cancel) {
  const field = new RuleField(app.client, { label: "Rule", value: given.rule });
  const tag = h("input", { name: "tag", maxlength: 120, dir: "auto", autocomplete: "off", value: given.tag ?? "" });
  const trial = new Trial(app, (refused) => field.mark(refused));
  let timer = 0;
  const changed = () => {
    const rule = field.value.trim();
    trial.keepOnly(rule);
    clearTimeout(timer);
    timer = setTimeout(() => rule && refusalOf(app.client, rule).then((refused) => refused && rule === field.value.trim() && field.mark(refused)), CHECK_MS);
  };
  return form({ class: "stack rule-form", "aria-label": given.id ? "Change the rule" : "Save a rule", oninput: changed, onreset: () => clearTimeout(timer) }, [
    field.element, h("label", {}, "Tag, which each match of the rule has", tag),
    formEnd(given.id ? "Change the rule" : "Save the rule", cancel, h("button", { type: "button", onclick: () => trial.show(field.value.trim()) }, "Try the past hour")),
    trial.root,
  ], async (made, key) => {
    const body = { rule: field.value.trim(), tag: tag.value };
    const headers = { "Idempotency-Key": key.of(body) };
    const write = given.id ? app.client.request("PUT", `/v1/rules/${given.id}`, { body, headers }) : app.client.request("POST", "/v1/rules", { body: { rules: [body] }, headers });
    const saved = await write.catch((error) => { throw error.code === "duplicate" ? refusal(`you have saved this rule already, ${body.tag ? `with the tag ${body.tag}` : "also without a tag"}`, "rule") : error; });
    made.reset();
    onDone(given.id ? saved : saved.rules[0]);
  }, { rule: field, draft: draftPlace(app, "rule", given.id ?? given.rule ?? "") });
}

/** The window that saves a rule, from any view. @param {any} app @param {string} rule @param {string} [tag] */
export function saveRule(app, rule, tag = "") {
  const window = app.dialog("Save as rule", ruleForm(app, { rule, tag }, () => {
    window.close();
    app.say("The rule is saved.");
  }, () => window.close()), { wide: true });
}
