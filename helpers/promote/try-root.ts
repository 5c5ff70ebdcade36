/*
 * Tries the root's file system as a promotion does before its first step, for an owner who wants to know: in a stage folder of its
 * own, journalled as a promotion that is given up, so that a cut leaves nothing that the next recovery does not settle.
 */
import { randomBytes } from 'node:crypto';
import { closeSync } from 'node:fs';
import { rootIdentity } from '../files/root.ts';
import type { Capabilities } from '../protocol/file-system.ts';
import { statx } from '../runtime/native-files.ts';
import { beginOf } from './apply.ts';
import { probe } from './capabilities.ts';
import { discardJournal, Journal, journalName } from './journal.ts';
import type { Staging } from './journal-records.ts';
import { makeStage } from './stage.ts';
import { discardStage } from './stage-end.ts';
import type { Scene } from './stage-end.ts';
import { STAGE_PREFIX } from './tree.ts';

const ITSELF = Buffer.alloc(0);
const NOTHING_APPROVED = '0'.repeat(64);

/** What the file system of the root has; `bootId` is the kernel's. The root is as it was when this returns. Throws NativeError where the disk refuses. */
export function tryRoot({ own, root }: Scene, bootId: string): Capabilities {
  const begin = beginOf(root, {
    promotion: `prm_${randomBytes(16).toString('hex')}`,
    executor: '',
    run: '',
    undoes: null,
    manifestDigest: NOTHING_APPROVED,
    approvalDigest: NOTHING_APPROVED,
    rootIdentity: rootIdentity(root).toString('hex'),
    bootId,
    stage: STAGE_PREFIX + randomBytes(16).toString('hex'),
    at: Date.now(),
  });
  const journal = Journal.begin(own, begin);
  const file = { folder: own, name: journalName('staging') };
  let staging: Staging | undefined;
  try {
    const stage = makeStage(root, begin.stage);
    try {
      const [stageIno, rootMtimeNs] = [statx(stage, ITSELF).ino.toString(), statx(root, ITSELF).mtimeNs.toString()];
      staging = { kind: 'staging', stageIno, rootMtimeNs };
      journal.append(staging);
      journal.write();
      return probe(stage);
    } finally {
      closeSync(stage);
    }
  } finally {
    journal.close();
    discardStage(root, file, begin, staging);
    discardJournal(file);
  }
}
