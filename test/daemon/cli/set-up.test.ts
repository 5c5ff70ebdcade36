import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { CliFailure } from '../../../daemon/cli/failure.ts';
import { knownPlaces, placesIn, placesOf } from '../../../daemon/cli/places.ts';
import { chooseRoot } from '../../../daemon/cli/root-choice.ts';
import {
  isPaired,
  readPin,
  readPolicy,
  readSetUp,
  rewritePin,
  writePin,
  writeSetUp,
} from '../../../daemon/cli/set-up.ts';
import type { PairedState } from '../../../daemon/cli/set-up.ts';
import { executorIdSchema } from '../../../helpers/protocol/ids.ts';

const refused = (error: unknown): boolean => error instanceof CliFailure && error.ending === 'refused';
const executor = executorIdSchema.parse(`exr_${'a'.repeat(32)}`);
// What is not looked at here need not be a whole claim.
const paired = {
  state: 'paired',
  executor,
  fingerprint: 'f'.repeat(64),
  commandKey: Buffer.alloc(32, 1),
  rootIdentity: Buffer.alloc(32, 2),
} as unknown as PairedState;

const rules = (own: string[] = [], home?: string, wholeHome = false) => ({ own, home, wholeHome });

describe('set-up', () => {
  let folder: string;
  let root: string;

  beforeEach(() => {
    folder = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'set-up-')));
    root = path.join(folder, 'project');
    fs.mkdirSync(path.join(root, 'below'), { recursive: true });
  });
  afterEach(() => fs.rmSync(folder, { recursive: true }));

  describe('the choice of a root', () => {
    it('a plain folder is taken, one behind a link is stored resolved', () => {
      fs.symlinkSync(root, path.join(folder, 'link'));
      assert.equal(chooseRoot(root, rules()), root);
      assert.equal(chooseRoot(path.join(folder, 'link'), rules()), root);
      assert.equal(chooseRoot(path.join(folder, 'link', 'below', '..', 'below'), rules()), path.join(root, 'below'));
    });

    const wrong: Record<string, () => unknown> = {
      'a folder that does not exist, and never its parent': () => chooseRoot(path.join(root, 'gone'), rules()),
      'a file': () => {
        fs.writeFileSync(path.join(folder, 'file'), '');
        return chooseRoot(path.join(folder, 'file'), rules());
      },
      'the whole machine': () => chooseRoot('/', rules()),
      'the whole machine behind a link': () => {
        fs.symlinkSync('/', path.join(folder, 'slash'));
        return chooseRoot(path.join(folder, 'slash'), rules());
      },
      'a home': () => chooseRoot(root, rules([], root)),
      'what holds a home': () => chooseRoot(folder, rules([], root)),
      'the folder of the state': () => chooseRoot(root, rules([root])),
      'what holds the state': () => chooseRoot(folder, rules([path.join(root, 'not', 'there', 'yet')])),
      'what lies below the state': () => chooseRoot(path.join(root, 'below'), rules([root])),
      'what holds the state through a link': () => {
        fs.symlinkSync(path.join(root, 'below'), path.join(folder, 'state'));
        return chooseRoot(root, rules([path.join(folder, 'state')]));
      },
    };
    for (const [what, choose] of Object.entries(wrong)) {
      it(`${what} is refused without a path in the sentence`, () => {
        assert.throws(choose, (error) => refused(error) && error instanceof Error && !error.message.includes(folder));
      });
    }

    it('a home is taken where the owner says so, and a folder of the same beginning is another one', () => {
      assert.equal(chooseRoot(root, rules([], root, true)), root);
      fs.mkdirSync(`${root}-other`);
      assert.equal(chooseRoot(`${root}-other`, rules([root])), `${root}-other`);
    });
  });

  describe('places', () => {
    it('are the system’s under root, the user’s otherwise, and one folder where asked for', () => {
      assert.equal(placesOf('default', {}, 0).stateDir, '/var/lib/nessie-executor/executors/default');
      const own = placesOf('work', { HOME: '/homes/me' }, 1000);
      assert.deepEqual(
        [own.stateDir, own.ownerDir],
        ['/homes/me/.local/state/nessie-executor/work', '/homes/me/.config/nessie-executor/work/owner'],
      );
      const set = placesOf('work', { HOME: '/homes/me', XDG_STATE_HOME: '/s', XDG_CONFIG_HOME: 'relative' }, 1000);
      assert.deepEqual(
        [set.stateDir, set.configDir],
        ['/s/nessie-executor/work', '/homes/me/.config/nessie-executor/work'],
      );
      assert.equal(placesIn(folder).stateDir, path.join(folder, 'state'));
    });

    it('a name that could leave the folder is refused', () => {
      for (const name of ['', '..', '../x', 'a/b', 'A', '-x', 'x'.repeat(33), 'x\n']) {
        assert.throws(() => placesOf(name, { HOME: '/homes/me' }, 1000), CliFailure, name);
      }
    });

    it('every executor that was set up is known, and nothing else', () => {
      const environment = { HOME: folder };
      assert.deepEqual(knownPlaces(environment, 1000), []);
      for (const name of ['second', 'first']) {
        writeSetUp({ places: placesOf(name, environment, 1000), origin: 'https://a.example', root });
      }
      fs.mkdirSync(path.join(folder, '.local/state/nessie-executor/empty'));
      assert.deepEqual(
        knownPlaces(environment, 1000).map(({ name }) => name),
        ['first', 'second'],
      );
    });
  });

  describe('what is written', () => {
    const origin = 'https://a.example';

    it('configuration, policy and owner’s folder are there, private where they must be, and nothing half written is left', () => {
      const places = placesIn(path.join(folder, 'executor'));
      writeSetUp({ places, origin, root });
      assert.equal(readSetUp(places)?.root, root);
      assert.equal(readPolicy(places).promotion.confirm, 'page');
      assert.equal(fs.statSync(places.stateDir).mode & 0o777, 0o700);
      assert.equal(fs.statSync(path.join(places.stateDir, 'supervisor.json')).mode & 0o777, 0o600);
      const readable = process.getuid?.() === 0 ? 0o644 : 0o600;
      assert.equal(fs.statSync(path.join(places.configDir, 'policy.json')).mode & 0o777, readable);
      assert.deepEqual(fs.readdirSync(places.configDir).toSorted(), ['owner', 'policy.json']);
      assert.ok(!isPaired(places));
    });

    it('a policy that the owner wrote is kept, and a second set-up before pairing may choose anew', () => {
      const places = placesIn(path.join(folder, 'executor'));
      writeSetUp({ places, origin, root });
      const file = path.join(places.configDir, 'policy.json');
      const own = fs.readFileSync(file, 'utf8').replace('"page"', '"machine"');
      fs.writeFileSync(file, own);
      writeSetUp({ places, origin: 'https://b.example', root: path.join(root, 'below') });
      assert.equal(fs.readFileSync(file, 'utf8'), own);
      assert.equal(readSetUp(places)?.origin, 'https://b.example');
    });

    it('a paired machine keeps its root and origin', () => {
      const places = placesIn(path.join(folder, 'executor'));
      writeSetUp({ places, origin, root });
      writePin({ places, paired, confirm: 'machine' });
      assert.deepEqual(readPin(places), {
        executor,
        promotion: 'machine',
        commandKey: '01'.repeat(32),
        rootIdentity: '02'.repeat(32),
      });
      assert.throws(() => writeSetUp({ places, origin, root: path.join(root, 'below') }), refused);
      assert.throws(() => writeSetUp({ places, origin: 'https://b.example', root }), refused);
      writeSetUp({ places, origin, root });
      rewritePin(places, { promotion: 'page' });
      assert.equal(readPin(places)?.promotion, 'page');
      assert.equal(readPin(places)?.commandKey, '01'.repeat(32));
    });

    it('an origin without TLS is refused before anything is written', () => {
      const places = placesIn(path.join(folder, 'executor'));
      assert.throws(() => writeSetUp({ places, origin: 'http://a.example', root }), refused);
      assert.ok(!fs.existsSync(places.stateDir));
    });
  });
});
