import { AcpError } from '../../contract/errors.ts';
import {
  type BundleDefinition,
  type BundledRun,
  BundleHashes,
  type BundleHeader,
  type BundleLine,
  type BundleManifest,
  bundleFormat,
  bundleVersion,
  type RunBundle,
} from './bundle.format.ts';

const refuse = (message: string, cause?: unknown): AcpError =>
  new AcpError('bundle-invalid', message, cause === undefined ? {} : { cause });

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const parseLine = (text: string, number: number): BundleLine => {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw refuse(`Line ${number} of the bundle is not JSON: the file is damaged or was cut off.`, cause);
  }
  if (!isRecord(value) || typeof value['section'] !== 'string' || !('data' in value))
    throw refuse(`Line ${number} of the bundle is no line of a run bundle.`);
  return { section: value['section'], data: value['data'] };
};

/** The first line decides whether the rest can be read at all. */
const checkHeader = ({ section, data }: BundleLine): BundleHeader => {
  if (section !== 'header' || !isRecord(data) || data['format'] !== bundleFormat)
    throw refuse('The file is not a run bundle.');
  const { version } = data;
  if (typeof version !== 'number' || !Number.isSafeInteger(version) || version < 1)
    throw refuse('The header of the bundle has no format version.');
  if (version > bundleVersion)
    throw refuse(`The bundle has format version ${version}; this program reads versions up to ${bundleVersion}.`);
  return data as unknown as BundleHeader;
};

const checkManifest = (found: BundleManifest, written: BundleManifest): void => {
  for (const [name, { lines, sha256 }] of Object.entries(found.sections)) {
    const stated = isRecord(written.sections) ? written.sections[name] : undefined;
    if (stated === undefined) throw refuse(`Section "${name}" of the bundle is not in its manifest.`);
    if (stated.lines !== lines)
      throw refuse(`Section "${name}" of the bundle has ${lines} lines, its manifest says ${stated.lines}.`);
    if (stated.sha256 !== sha256) throw refuse(`Section "${name}" of the bundle was changed after it was written.`);
  }
  for (const name of Object.keys(written.sections))
    if (found.sections[name] === undefined) throw refuse(`Section "${name}" of the bundle is missing.`);
  if (written.sha256 !== found.sha256) throw refuse('The order of the lines in the bundle was changed.');
};

interface RunParts {
  record: unknown;
  start: unknown;
  readonly steps: unknown[];
  readonly tools: unknown[];
  readonly events: unknown[];
}

const addToRun = (run: RunParts, part: string, data: unknown): void => {
  if (part === 'record' || part === 'start') run[part] = data;
  else if (part === 'steps' || part === 'tools' || part === 'events') run[part].push(data);
};

/** The hashes hold, so the values are what a program of this format has written. */
const wholeRun = (id: string, run: RunParts): BundledRun => {
  if (run.record === undefined || run.start === undefined) throw refuse(`Run ${id} of the bundle is not complete.`);
  return run as BundledRun;
};

/** Reads a bundle and checks every hash of it. Throws `bundle-invalid`, naming the section at fault. */
export const readBundle = (text: string): RunBundle => {
  const lines = text.split('\n');
  const hasEnd = lines.at(-1) === '';
  if (hasEnd) lines.pop();
  const hashes = new BundleHashes();
  const definitions: BundleDefinition[] = [];
  const runs = new Map<string, RunParts>();
  let header: BundleHeader | null = null;
  let manifest: BundleManifest | null = null;
  for (const [index, raw] of lines.entries()) {
    if (manifest !== null) throw refuse('The bundle goes on after its manifest.');
    const line = parseLine(raw, index + 1);
    header ??= checkHeader(line);
    if (line.section === 'manifest') {
      manifest = line.data as BundleManifest;
      continue;
    }
    hashes.add(line.section, raw);
    if (line.section === 'definitions') definitions.push(line.data as BundleDefinition);
    const [, id, part] = /^runs\/([^/]+)\/(\w+)$/.exec(line.section) ?? [];
    if (id === undefined || part === undefined) continue;
    const run = runs.get(id) ?? { record: undefined, start: undefined, steps: [], tools: [], events: [] };
    runs.set(id, run);
    addToRun(run, part, line.data);
  }
  if (header === null) throw refuse('The file is empty.');
  if (manifest === null) throw refuse('The bundle was cut off: its manifest is missing.');
  if (!isRecord(manifest) || !isRecord(manifest.sections)) throw refuse('The manifest of the bundle cannot be read.');
  checkManifest(hashes.manifest(), manifest);
  return { header, definitions, runs: [...runs].map(([id, run]) => wholeRun(id, run)) };
};
