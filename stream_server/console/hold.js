// @ts-check
// Whether somebody reads a list of rows or aims at it, so that nothing in it may move.

const TOP_PIXELS = 60;
const LOOK_MS = 1000;
const TAP_MS = 500; // from the end of a touch to its click, at most
const OPEN = "[data-act=why][aria-expanded=true], details[open] > summary, form";

export class Hold {
  /** @param {HTMLElement} list @param {HTMLElement} pill tells how many rows wait @param {() => void} goOn called when a hold may be over */
  constructor(list, pill, goOn) {
    [this.list, this.pill, this.goOn, this.timer, this.lifted] = [list, pill, goOn, 0, 0];
    this.isPointed = this.isTouched = false; // whether a pointer has moved here, and a finger is here
    /** @type {Element | null} */ this.window = null; // that was opened from a row, until the reader does something after it is closed
    /** @type {Node | null} */ this.pressed = null; // the focus that came by a press holds nothing: one goes on elsewhere
    const touch = (/** @type {any} */ event) => {
      clearTimeout(this.lifted);
      if (event.touches.length) this.isTouched = true;
      else this.lifted = setTimeout(() => { this.isTouched = false; goOn(); }, TAP_MS); // the click of a tap comes later, and hits what is there then
    };
    const heeds = {
      pointermove: (/** @type {any} */ event) => void (this.isPointed ||= event.pointerType !== "touch"), pointerleave: goOn, focusout: goOn,
      pointerdown: (/** @type {any} */ event) => void (this.pressed = event.target.closest("a, button, summary, [tabindex]")), keydown: () => void (this.pressed = null),
      touchstart: touch, touchend: touch, touchcancel: touch,
      click: () => {
        const window = this.window ??= document.querySelector("dialog[open]");
        const goOn = () => { if (this.window === window) (this.window = null, this.goOn()); };
        window?.addEventListener("close", () => ["pointermove", "pointerdown", "keydown"].forEach((kind) => addEventListener(kind, goOn, { once: true })));
      },
    };
    for (const place of [list, pill]) for (const [kind, listener] of Object.entries(heeds)) place.addEventListener(kind, listener, { passive: true });
  }

  /** Not each end of a hold is an event, so it is looked at again in a second. */
  get isOn() {
    const { list, pill, pressed } = this;
    const [focused, selection] = [document.activeElement, getSelection()];
    const isOn = this.window || this.isTouched || (this.isPointed && (list.matches(":hover") || pill.matches(":hover"))) || list.querySelector(OPEN)
      || (list.contains(focused) && !(focused?.closest(".menu") ?? focused)?.contains(pressed)) || (selection && !selection.isCollapsed && selection.containsNode(list, true))
      || (list.closest(".scroller, main")?.scrollTop ?? 0) > TOP_PIXELS;
    if (isOn) this.timer ||= setTimeout(() => { this.timer = 0; this.goOn(); }, LOOK_MS);
    return Boolean(isOn);
  }

  /** Ends it, whatever it was: what the reader had open is closed. Only the scrolled place is left to the caller. */
  end() {
    for (const open of /** @type {NodeListOf<HTMLElement>} */ (this.list.querySelectorAll(OPEN))) open.click();
    if (getSelection()?.containsNode(this.list, true)) getSelection()?.empty();
    [this.isPointed, this.window] = [false, null];
  }
}
