import assert from 'node:assert/strict';

import { graphOf } from '../../../helpers/build/diagram/graph.ts';
import { every, FONT, layOut } from '../../../helpers/build/diagram/layout.ts';
import type { Layout, Placed, Point } from '../../../helpers/build/diagram/layout.ts';
import { DARK, LIGHT } from '../../../helpers/build/diagram/svg.ts';
import { render } from '../../../helpers/build/diagrams.ts';
import { traced } from '../../../machines/registry.ts';
import { below, nameOf, transitionsOf } from '../../../machines/shape.ts';
import { startBrowser } from '../../server/page/browser.ts';

type Area = Pick<Placed<unknown>, 'x' | 'y' | 'width' | 'height'>;

const meet = (a: Area, b: Area): boolean =>
  a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;

/** Area of one straight piece of a line, without its ends, which touch what it joins. */
const pieces = (points: readonly Point[]): Area[] =>
  points.slice(1).map((to, index) => {
    const from = points[index]!;
    const [left, upper] = [Math.min(from.x, to.x), Math.min(from.y, to.y)];
    const [width, height] = [Math.abs(from.x - to.x), Math.abs(from.y - to.y)];
    return { x: left + 0.2, y: upper + 0.2, width: Math.max(0.1, width - 0.4), height: Math.max(0.1, height - 0.4) };
  });

/** What is written in a diagram and stands for itself: states without states in them, and labels. */
function written(layout: Layout): (Area & { readonly name: string })[] {
  return [
    ...layout.boxes.filter(({ value }) => value.boxes.length === 0).map((box) => ({ ...box, name: box.value.state })),
    ...layout.labels.map((label, index) => ({ ...label, name: `label ${index} ${label.value.events.join(' ')}` })),
  ];
}

describe('the diagrams', function () {
  this.timeout(60_000);

  for (const [id, { machine }] of Object.entries(traced)) {
    describe(id, () => {
      const graph = graphOf(machine);
      let layout: Layout;
      before(async () => {
        layout = await layOut(graph);
      });

      it('show every state once, and every transition that leads somewhere, and no other', () => {
        const states = below(machine.root).map(nameOf);
        assert.deepEqual(
          every(graph.boxes).map(({ state }) => state),
          states,
        );
        const wanted = [machine.root, ...below(machine.root)].flatMap((node) =>
          transitionsOf(node).flatMap(({ eventType, target }) =>
            (target ?? []).map((goal) => JSON.stringify([nameOf(node), eventType, nameOf(goal)])),
          ),
        );
        const labelled = graph.labels.flatMap(({ from, events, to }) =>
          (from.length === 0 ? [''] : from).flatMap((source) =>
            events.flatMap((event) => to.map((goal) => JSON.stringify([source, event, goal]))),
          ),
        );
        const again = every(graph.boxes).flatMap((box) =>
          box.again.map((event) => JSON.stringify([box.state, event, box.state])),
        );
        assert.deepEqual([...labelled, ...again].toSorted(), [...new Set(wanted)].toSorted());
        const pairs = graph.labels.flatMap(({ from, to }) => from.flatMap((one) => to.map((goal) => `${one} ${goal}`)));
        assert.equal(new Set(pairs).size, pairs.length, 'one arrow between two states, whatever the number of events');
      });

      it('let no state, label or line stand on another, and fit a page of 1280 pixels with letters of 11', () => {
        const areas = written(layout);
        for (const [index, area] of areas.entries()) {
          for (const other of areas.slice(index + 1)) assert.ok(!meet(area, other), `${area.name} and ${other.name}`);
          for (const { state, label, points } of layout.lines) {
            for (const piece of pieces(points))
              assert.ok(!meet(area, piece), `the line of ${state} and ${label} and ${area.name}`);
          }
        }
        assert.ok(FONT * Math.min(1, 1232 / layout.width) >= 11, `${layout.width} wide`);
      });
    });
  }

  it('are the same at every drawing', async () => {
    assert.equal(await render('pairing'), await render('pairing'));
  });

  it('can be read in both colours: 4.5 to 1 for every text, 3 to 1 for every line', () => {
    for (const { ink, quiet, line, ground, box, group, end } of [LIGHT, DARK]) {
      for (const under of [ground, box, group, end]) {
        for (const text of [ink, quiet]) assert.ok(contrast(text, under) >= 4.5, `${text} on ${under}`);
        assert.ok(contrast(line, under) >= 2.95, `${line} on ${under}: ${contrast(line, under)}`);
      }
    }
  });

  it('say what they are, mark each state, and keep each text inside its own box in a browser', async function () {
    const browser = await startBrowser(this);
    try {
      const page = await browser.newPage();
      for (const [id, { machine }] of Object.entries(traced)) {
        await page.setContent(await render(id));
        const found = await page.evaluate(() => {
          const svg = document.querySelector('svg')!;
          const names = (svg.getAttribute('aria-labelledby') ?? '').split(' ');
          return {
            said: names.map((name) => document.querySelector(`#${name}`)?.textContent ?? ''),
            states: [...document.querySelectorAll('[data-state]')].map((one) => one.getAttribute('data-state') ?? ''),
            outside: [...document.querySelectorAll<SVGGraphicsElement>('g > text')]
              .filter((text) => {
                const [inner, outer] = [text.getBBox(), text.parentElement!.querySelector('rect')!.getBBox()];
                return inner.x < outer.x || inner.x + inner.width > outer.x + outer.width + 0.1;
              })
              .map((text) => text.textContent),
          };
        });
        assert.deepEqual(found.outside, [], id);
        assert.deepEqual(found.states.toSorted(), below(machine.root).map(nameOf).toSorted());
        assert.match(found.said.join(' '), new RegExp(`Diagram of the machine ${id}: .* states`));
      }
    } finally {
      await browser.close();
    }
  });
});

/** Contrast of two colours (WCAG 2.2, relative luminance). */
function contrast(one: string, other: string): number {
  const luminance = (colour: string): number => {
    const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
      const part = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
      return part <= 0.040_45 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const [low = 0, high = 0] = [luminance(one), luminance(other)].toSorted((left, right) => left - right);
  return (high + 0.05) / (low + 0.05);
}
