import type { Page } from 'playwright-core';

/** Most steps of the Tab key before something counts as out of reach. */
const STEPS = 80;

interface Focused {
  readonly name: string;
  readonly role: string;
  /** The browser draws a ring around it. */
  readonly ring: boolean;
  /** It lies within the window. */
  readonly inView: boolean;
}

/** A person without a mouse: everything is reached and done with keys alone. */
export class Keyboard {
  readonly page: Page;
  /** What had the focus without a visible ring, or out of sight: one line each. */
  readonly blind: string[] = [];

  constructor(page: Page) {
    this.page = page;
  }

  /** What has the focus, as it would be read out. */
  focused(): Promise<Focused> {
    return this.page.evaluate(() => {
      const at = document.activeElement;
      if (!(at instanceof HTMLElement) || at === document.body) return { name: '', role: '', ring: true, inView: true };
      const labels = 'labels' in at && at.labels instanceof NodeList ? [...at.labels] : [];
      const label = labels.map((one) => one.textContent ?? '').join(' ');
      const name = (at.getAttribute('aria-label') ?? (label === '' ? at.innerText : label))
        .replaceAll(/\s+/g, ' ')
        .trim();
      const { outlineStyle, outlineWidth } = getComputedStyle(at);
      const { top, bottom, left, right } = at.getBoundingClientRect();
      return {
        name,
        role: at.getAttribute('role') ?? at.tagName.toLowerCase(),
        ring: at.tagName === 'H1' || (outlineStyle !== 'none' && Number.parseFloat(outlineWidth) >= 2),
        inView: bottom > 0 && top < innerHeight && left > -2 && right < innerWidth + 2,
      };
    });
  }

  /** Walks with Tab until something of that name has the focus. Rejects with what was met on the way. */
  async to(name: string | RegExp, { back = false }: { readonly back?: boolean } = {}): Promise<void> {
    const fits = (met: string): boolean => (typeof name === 'string' ? met.startsWith(name) : name.test(met));
    const met: string[] = [];
    for (let step = 0; step < STEPS; step += 1) {
      await this.page.keyboard.press(back ? 'Shift+Tab' : 'Tab');
      const focused = await this.focused();
      if (focused.name !== '' && (!focused.ring || !focused.inView)) {
        this.blind.push(`${focused.role} ${focused.name}: ${focused.ring ? 'out of sight' : 'no ring'}`);
      }
      if (fits(focused.name)) return;
      met.push(focused.name);
    }
    throw new Error(`${String(name)} is not reached by Tab; met: ${met.join(' | ')}`);
  }

  /** Walks once through everything that Tab reaches; answers the names. */
  async walkAll(): Promise<readonly string[]> {
    const met: string[] = [];
    for (let step = 0; step < STEPS; step += 1) {
      await this.page.keyboard.press('Tab');
      const { name, ring, inView, role } = await this.focused();
      if (name !== '' && name === met[0]) break;
      if (name === '') continue;
      if (!ring || !inView) this.blind.push(`${role} ${name}: ${ring ? 'out of sight' : 'no ring'}`);
      met.push(name);
    }
    return met;
  }

  /** Goes to a field and types into it in place of what stands there. */
  async fill(label: string, text: string): Promise<void> {
    await this.to(label);
    await this.page.keyboard.press('Control+A');
    await this.page.keyboard.type(text);
  }

  /** Goes to a button or link and presses it. */
  async press(name: string | RegExp): Promise<void> {
    await this.to(name);
    await this.page.keyboard.press('Enter');
  }

  async key(key: string): Promise<void> {
    await this.page.keyboard.press(key);
  }
}
