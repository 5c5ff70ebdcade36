#!/usr/bin/env node
/*
 * nessie-executor: one command of the machine's owner. A mistake ends with one sentence and an exit code of failure.ts.
 */
import { CommanderError } from 'commander';
import { StartRefusal } from '../../helpers/runtime/configuration.ts';
import { InstallationError, readInstallation } from '../../helpers/runtime/installation.ts';
import { VERSION } from '../version.ts';
import { CliFailure, EXIT_CODES } from './failure.ts';
import type { Ending } from './failure.ts';
import { buildProgram } from './program.ts';
import { installationFolder } from './supervised.ts';
import { visible } from './terminal.ts';

function versionText(): string {
  try {
    return `${VERSION} (installation ${readInstallation(installationFolder()).digest})`;
  } catch (error) {
    if (error instanceof InstallationError || error instanceof CliFailure) return `${VERSION} (not built)`;
    throw error;
  }
}

function fail(ending: Ending, sentence: string): number {
  process.stderr.write(`nessie-executor: ${sentence}\n`);
  return EXIT_CODES[ending].code;
}

function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT_CODES.usage.code;
  if (error instanceof CliFailure) return fail(error.ending, error.message);
  if (error instanceof StartRefusal || error instanceof InstallationError) return fail('configuration', error.message);
  if (error instanceof Error && error.name === 'PolicyInvalid') return fail('configuration', error.message);
  // The message of a failed system call would carry a path.
  const said =
    error instanceof Error ? `${error.name}: ${'code' in error ? String(error.code) : error.message}` : 'unknown';
  return fail('bug', `this should not have happened (${visible(said)}); please report it`);
}

// A reader that closed its end, such as `head`, has what it wanted.
process.stdout.on('error', () => process.exit(0));
// --version alone reads the manifest.
const program = buildProgram(process.argv.includes('--version') ? versionText() : VERSION);
try {
  await program.parseAsync();
} catch (error) {
  process.exitCode = exitCodeOf(error);
}
