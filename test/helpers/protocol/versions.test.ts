import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import * as z from 'zod';
import { DAEMON_PROTOCOL_VERSION, daemonRefusals, daemonRequests } from '../../../daemon/protocol.ts';
import { KEY_STORE_PROTOCOL_VERSION, keyStoreRefusals, keyStoreRequests } from '../../../helpers/key-store/protocol.ts';
import { LINK_PROTOCOL_VERSION, linkEvents, linkRefusals, linkRequests } from '../../../helpers/link/protocol.ts';
import {
  PROMOTE_PROTOCOL_VERSION,
  promoteEvents,
  promoteRefusals,
  promoteRequests,
} from '../../../helpers/promote/protocol.ts';
import {
  WORKSPACE_PROTOCOL_VERSION,
  workspaceRefusals,
  workspaceRequests,
} from '../../../helpers/workspace/protocol.ts';

const RECORDED = path.resolve(import.meta.dirname, '..', '..', 'fixtures', 'protocol-versions.json');

type Shapes = Readonly<Record<string, z.ZodType | { readonly body: z.ZodType; readonly reply: z.ZodType }>>;

const protocols: Readonly<Record<string, { version: number; shapes: Shapes; codes: readonly string[] }>> = {
  daemon: { version: DAEMON_PROTOCOL_VERSION, shapes: daemonRequests, codes: daemonRefusals },
  'key-store': { version: KEY_STORE_PROTOCOL_VERSION, shapes: keyStoreRequests, codes: keyStoreRefusals },
  link: { version: LINK_PROTOCOL_VERSION, shapes: { ...linkRequests, ...linkEvents }, codes: linkRefusals },
  promote: {
    version: PROMOTE_PROTOCOL_VERSION,
    shapes: { ...promoteRequests, ...promoteEvents },
    codes: promoteRefusals,
  },
  workspace: { version: WORKSPACE_PROTOCOL_VERSION, shapes: workspaceRequests, codes: workspaceRefusals },
};

/** SHA-256 over every shape and code of a protocol: another union is another digest. */
function digestOf(shapes: Shapes, codes: readonly string[]): string {
  const schema = (shape: z.ZodType) => z.toJSONSchema(shape, { unrepresentable: 'any', io: 'input' });
  const described = Object.entries(shapes).map(([name, shape]) =>
    'body' in shape ? [name, schema(shape.body), schema(shape.reply)] : [name, schema(shape)],
  );
  return createHash('sha256')
    .update(JSON.stringify([described, codes]))
    .digest('hex');
}

describe('versions of the protocols', () => {
  const now = Object.fromEntries(
    Object.entries(protocols).map(([owner, { version, shapes, codes }]) => [
      owner,
      { version, digest: digestOf(shapes, codes) },
    ]),
  );
  if (process.env['RECORD'] === '1') fs.writeFileSync(RECORDED, `${JSON.stringify(now, undefined, 2)}\n`);
  const recorded = JSON.parse(fs.readFileSync(RECORDED, 'utf8')) as typeof now;
  for (const owner of Object.keys(protocols)) {
    it(`${owner}: a changed union has a raised version`, () => {
      // After raising the version: RECORD=1 npx mocha test/helpers/protocol/versions.test.ts
      assert.deepEqual(now[owner], recorded[owner]);
    });
  }
});
