// @ts-check
/** The user's saved rules: to add, change and delete them, and to read what they match in a column. */

import { fill, h, isolate } from "../dom.js";
import { draftPlace, opener } from "../forms.js";
import { keepColumn } from "../kept.js";
import { ruleForm } from "../rule_form.js";
import { counted, timeAgo } from "./text.js";

const MOST = 1000; // rules of one user, by the server

/** @param {import("./page.js").Page} page */
export async function rules(page) {
  const { site } = page;
  page.show("Saved rules");
  const answer = await page.attempt(() => site.get("/v1/rules"));
  if (!answer || page.ended) return;
  /** @type {any[]} */ let all = answer.rules;
  const used = h("p", { class: "muted", role: "status" });
  const columns = h("p", { class: "row" });
  const list = h("ul", { class: "feed-list", "aria-label": "Your saved rules" });
  const slot = h("div", {});
  const toColumn = (/** @type {string} */ saved) => () => (keepColumn({ saved }), site.app.go("#/streams"));
  const tell = () => {
    fill(used, `${counted(all.length, "rule")} of ${MOST.toLocaleString("en")}. A stream with rules=saved follows each change at once.`);
    const tags = [...new Set(all.map(({ tag }) => tag).filter(Boolean))];
    fill(columns, all.length > 0 && [h("span", { class: "muted" }, "As a column:"), h("button", { onclick: toColumn("all") }, "All"), tags.map((tag) => h("button", { onclick: toColumn(`tag:${tag}`) }, isolate(tag)))]);
  };

  /** @param {any} rule */
  function row(rule) {
    const path = `/v1/rules/${rule.id}`;
    const forget = () => (all = all.filter((one) => one !== rule), tell());
    const remove = () => (forget(), site.app.undo.later({ text: `The rule ${rule.tag || rule.rule} is deleted`, method: "DELETE", path, hides: `rule-${rule.id}`, undone: () => (all.push(rule), tell()) }));
    const back = (/** @type {any} */ next) => { // its place gets the focus back
      const shown = row(next);
      element.replaceWith(shown);
      shown.querySelector("button").focus();
    };
    const renew = (/** @type {any} */ saved) => (all = all.map((one) => (one === rule ? saved : one)), tell(), back(saved));
    const element = site.app.undo.tie(h("li", { tabindex: "-1" },
      h("div", { class: "entry" }, h("code", { class: "rule grow" }, isolate(rule.rule)), rule.tag && h("span", { class: "pill" }, isolate(rule.tag)), h("span", { class: "muted small" }, timeAgo(rule.created))),
      h("div", { class: "row" }, h("button", { onclick: () => change(), "aria-label": `Change ${rule.rule}` }, "Change"), h("button", { class: "danger", onclick: remove, "aria-label": `Delete ${rule.rule}` }, "Delete"))), `rule-${rule.id}`);
    const change = opener(element, draftPlace(site.app, "rule", rule.id), () => ruleForm(site.app, rule, renew, () => back(rule)));
    return element;
  }

  const add = () => fill(slot, ruleForm(site.app, {}, (saved) => (all.push(saved), list.prepend(row(saved)), tell(), add(), list.querySelector("li")?.focus())));
  add();
  tell();
  list.append(...all.toReversed().map(row));
  page.show("Saved rules", used, slot, columns, list);
}
