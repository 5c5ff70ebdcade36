import assert from 'node:assert/strict';
import { Refusal } from '../../server/refusal.ts';
import { QuestionRefused } from '../fakes/fake-executor.ts';

/** For `assert.rejects`: the control plane refused with this code, to a caller in the process or to a machine. */
export const refusedWith = (code: string) => (error: unknown) => {
  assert.ok(error instanceof Refusal || error instanceof QuestionRefused, String(error));
  assert.equal(error.code, code);
  return true;
};
