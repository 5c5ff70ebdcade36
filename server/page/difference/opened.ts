/*
 * Everything that opens and compares sealed content, loaded when a person asks for it.
 */
export { compare } from './lines.ts';
export { readManifest } from './manifest.ts';
export { createReader } from './sealed.ts';
