import assert from 'node:assert/strict';
import { ControlClock, GAP_LIMIT_MS } from '../../daemon/clock.ts';
import { checkStart } from '../../daemon/rules.ts';

const START = 1_800_000_000_000;

/** Clocks that a test sets by hand. */
function clocks() {
  const at = { wall: START, running: 1000, boot: 1000 };
  return { at, sources: { wall: () => at.wall, running: () => at.running, boot: () => at.boot } };
}

describe('control clock', () => {
  it("follows the control plane's time, whatever the wall clock is set to", () => {
    const { at, sources } = clocks();
    const clock = new ControlClock(sources, 0);
    clock.anchor(START);
    at.running += 500;
    at.boot += 500;
    at.wall = START - 86_400_000;
    assert.equal(clock.now(), START + 500);
    at.wall = START + 365 * 86_400_000;
    assert.equal(clock.now(), START + 500);
  });

  it('never goes below the highest time that the ledger has seen', () => {
    const { at, sources } = clocks();
    at.wall = START - 86_400_000;
    assert.equal(new ControlClock(sources, START).now(), START);
  });

  it('forgets a wall clock that was ahead as soon as the control plane has stated the time', () => {
    const { at, sources } = clocks();
    at.wall = START + 3_600_000;
    const clock = new ControlClock(sources, 0);
    assert.equal(clock.now(), START + 3_600_000);
    clock.anchor(START);
    assert.equal(clock.now(), START);
  });

  it('counts the time that the machine slept', () => {
    const { at, sources } = clocks();
    const clock = new ControlClock(sources, 0);
    clock.anchor(START);
    at.boot += 3_600_000;
    assert.equal(clock.now(), START + 3_600_000);
  });

  it('never goes back when a later handshake states an earlier time', () => {
    const { sources } = clocks();
    const clock = new ControlClock(sources, 0);
    clock.anchor(START);
    const before = clock.now();
    clock.anchor(START - 60_000);
    assert.equal(clock.now(), before);
  });

  it('S-205 opens no window for a command that is over: not by a wall clock set back a day or forward a year, nor by a week asleep, nor by a restart', () => {
    const day = 86_400_000;
    const verdict = (clock: ControlClock, expiresAt: number) =>
      checkStart({ epoch: 1, expiresAt }, { permitted: true, epoch: 1, now: clock.now(), anchored: clock.isAnchored });
    const movements: Record<string, { readonly wall?: number; readonly boot?: number }> = {
      'no movement': {},
      'a day back': { wall: -day },
      'a year forward': { wall: 365 * day },
      'a week asleep': { boot: 7 * day, wall: 7 * day },
      'a week asleep under a clock that stood still': { boot: 7 * day },
    };
    for (const [what, { wall = 0, boot = 0 }] of Object.entries(movements)) {
      const { at, sources } = clocks();
      const clock = new ControlClock(sources, START);
      clock.anchor(START);
      at.wall += wall;
      at.boot += boot;
      const isAwake = boot === 0;
      assert.equal(verdict(clock, START - 1000), isAwake ? 'COMMAND_EXPIRED' : 'CONTROL_SILENT', what);
      assert.equal(verdict(clock, START + 1000), isAwake ? undefined : 'CONTROL_SILENT', what);
      // What is due in an hour is no earlier due: the gate compares it with this time.
      assert.ok(!isAwake || clock.now() < START + 3_600_000, what);
      // A new session that states an earlier time gives none back.
      clock.anchor(START - day);
      assert.equal(verdict(clock, START - 1000), 'COMMAND_EXPIRED', what);
      const restarted = new ControlClock(sources, START);
      assert.equal(verdict(restarted, START - 1000), 'CONTROL_SILENT', what);
      restarted.anchor(START - day);
      assert.ok(restarted.now() >= START, what);
    }
  });

  it('loses its anchor when the machine slept longer than the limit, and not before', () => {
    const { at, sources } = clocks();
    const clock = new ControlClock(sources, 0);
    assert.equal(clock.isAnchored, false);
    clock.anchor(START);
    at.running += 100;
    at.boot += 100 + GAP_LIMIT_MS;
    assert.equal(clock.isAnchored, true);
    at.boot += 1;
    assert.equal(clock.isAnchored, false);
    clock.anchor(START);
    assert.equal(clock.isAnchored, true);
  });
});
