import assert from 'node:assert/strict';
import fs from 'node:fs';

import { daemonRequests } from '../../../daemon/protocol.ts';
import { keyStoreRequests } from '../../../helpers/key-store/protocol.ts';
import { linkEvents, linkRequests } from '../../../helpers/link/protocol.ts';
import { promoteEvents, promoteRequests } from '../../../helpers/promote/protocol.ts';
import { registry } from '../../../helpers/protocol/registry.ts';
import { workspaceRequests } from '../../../helpers/workspace/protocol.ts';
import { channelQuestions, pairingCalls } from '../../../server/protocol.ts';

describe('the list of all messages', () => {
  it('names every message that a protocol.ts declares and no other', () => {
    const declared = [
      ...Object.keys(daemonRequests),
      ...Object.keys(keyStoreRequests),
      ...Object.keys(linkRequests),
      ...Object.keys(linkEvents),
      ...Object.keys(workspaceRequests),
      ...Object.keys(promoteRequests),
      ...Object.keys(promoteEvents),
      ...Object.keys(channelQuestions).map((name) => `channel.${name}`),
      ...Object.keys(pairingCalls).map((name) => `pairing.${name}`),
    ];
    assert.deepEqual(Object.keys(registry).toSorted(), declared.toSorted());
  });

  it('knows every program that has a protocol', () => {
    const owners = new Set<string>(Object.values(registry).map(({ owner }) => owner));
    const folders = fs.readdirSync('helpers').filter((name) => fs.existsSync(`helpers/${name}/protocol.ts`));
    for (const folder of folders) assert.ok(owners.has(folder), `helpers/${folder}/protocol.ts is in the list`);
  });

  it('names each message after the process that answers it', () => {
    const prefixes = {
      daemon: ['daemon'],
      'key-store': ['keystore'],
      link: ['link'],
      workspace: ['workspace'],
      promote: ['promote'],
      server: ['channel', 'pairing'],
    };
    for (const [name, { owner }] of Object.entries(registry)) {
      assert.ok(
        prefixes[owner].some((prefix) => name.startsWith(`${prefix}.`)),
        name,
      );
    }
  });
});
