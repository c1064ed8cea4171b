import { AcpError } from '../../contract/errors.ts';
import { isRecord } from '../../contract/record.ts';
import type { ModelTool } from '../../providers/models/model-provider.ts';
import { currentContent } from '../agents/index.ts';
import {
  type BundleDefinition,
  type BundledRun,
  BundleHashes,
  type BundleHeader,
  type BundleLine,
  type BundleManifest,
  type BundleStart,
  bundleFormat,
  bundleVersion,
  type RunBundle,
} from './bundle.format.ts';
import { shapeError } from './bundle-shape.ts';

/** The lines of a bundle without their ends; asked for twice, since every hash is checked before anything is used. */
export type BundleSource = () => AsyncIterable<string> | Iterable<string>;

const refuse = (message: string, cause?: unknown): AcpError =>
  new AcpError('bundle-invalid', message, cause === undefined ? {} : { cause });

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
    throw refuse(
      `The bundle has format version ${version}; this program reads versions up to ${bundleVersion}. A newer program reads it.`,
    );
  return data as unknown as BundleHeader;
};

const checkManifest = (actual: BundleManifest, claimed: unknown): void => {
  if (!isRecord(claimed) || !isRecord(claimed['sections'])) throw refuse('The manifest of the bundle cannot be read.');
  const { sections } = claimed;
  for (const [name, { lines, sha256 }] of Object.entries(actual.sections)) {
    const stated = Object.hasOwn(sections, name) ? sections[name] : undefined;
    if (!isRecord(stated)) throw refuse(`Section "${name}" of the bundle is not in its manifest.`);
    if (stated['lines'] !== lines)
      throw refuse(`Section "${name}" of the bundle has ${lines} lines, its manifest says ${stated['lines']}.`);
    if (stated['sha256'] !== sha256) throw refuse(`Section "${name}" of the bundle was changed after it was written.`);
  }
  for (const name of Object.keys(sections))
    if (actual.sections[name] === undefined) throw refuse(`Section "${name}" of the bundle is missing.`);
  if (claimed['sha256'] !== actual.sha256) throw refuse('The order of the lines in the bundle was changed.');
};

interface RunParts {
  readonly id: string;
  record: unknown;
  start: unknown;
  readonly steps: unknown[];
  readonly tools: unknown[];
  readonly events: unknown[];
}

const newRun = (id: string): RunParts => ({
  id,
  record: undefined,
  start: undefined,
  steps: [],
  tools: [],
  events: [],
});

const addToRun = (run: RunParts, part: string, data: unknown): void => {
  if (part === 'record' || part === 'start') run[part] = data;
  else if (part === 'steps' || part === 'tools' || part === 'events') run[part].push(data);
};

/** The run and the part that a line is of; null for every other section. */
const runPartOf = (section: string): { readonly id: string; readonly part: string } | null => {
  const [, id, part] = /^runs\/([^/]+)\/(\w+)$/.exec(section) ?? [];
  return id === undefined || part === undefined ? null : { id, part };
};

const wholeRun = (run: RunParts): BundledRun => {
  if (run.record === undefined || run.start === undefined) throw refuse(`Run ${run.id} of the bundle is not complete.`);
  const { id: _id, ...parts } = run;
  return parts as BundledRun;
};

/** Each run as its lines end; the file was checked before. */
const runsOf = async function* (source: BundleSource): AsyncGenerator<BundledRun> {
  let run: RunParts | null = null;
  let number = 0;
  for await (const raw of source()) {
    number += 1;
    const { section, data } = parseLine(raw, number);
    const place = runPartOf(section);
    if (place === null) continue;
    if (run !== null && run.id !== place.id) yield wholeRun(run);
    if (run?.id !== place.id) run = newRun(place.id);
    addToRun(run, place.part, data);
  }
  if (run !== null) yield wholeRun(run);
};

/** A definition as it is now, in a bundle of any version. */
const wholeDefinition = (definition: BundleDefinition): BundleDefinition => ({
  ...definition,
  content: currentContent(definition.content),
});

/** What is gathered while a file is checked, beside its hashes. */
class Contents {
  readonly definitions: BundleDefinition[] = [];
  readonly tools = new Map<string, ModelTool>();
  readonly #seen = new Set<string>();
  #last: { readonly id: string; readonly parts: Set<string> } | null = null;

  add({ section, data }: BundleLine): void {
    const place = runPartOf(section);
    const problem = shapeError(place?.part ?? section, data);
    if (problem !== null)
      throw refuse(`Section "${section}" of the bundle is not what a bundle has there: ${problem}.`);
    if (section === 'definitions') this.definitions.push(wholeDefinition(data as BundleDefinition));
    if (place === null) return;
    if (this.#last?.id !== place.id) this.#begin(place.id);
    this.#last?.parts.add(place.part);
    if (place.part === 'start')
      for (const tool of (data as BundleStart).compiled?.tools ?? []) this.tools.set(tool.name, tool);
  }

  end(): void {
    const { id, parts } = this.#last ?? { id: '', parts: new Set(['record', 'start']) };
    if (!parts.has('record') || !parts.has('start')) throw refuse(`Run ${id} of the bundle is not complete.`);
  }

  #begin(id: string): void {
    this.end();
    if (this.#seen.has(id)) throw refuse(`Run ${id} stands twice in the bundle.`);
    this.#seen.add(id);
    this.#last = { id, parts: new Set() };
  }
}

/**
 * Checks a bundle from its first line to its last, and gives its runs one at a time. Throws `bundle-invalid`, naming the
 * section at fault.
 */
export const openBundle = async (source: BundleSource): Promise<RunBundle> => {
  const hashes = new BundleHashes();
  const contents = new Contents();
  let header: BundleHeader | null = null;
  let manifest: { readonly data: unknown } | null = null;
  let number = 0;
  for await (const raw of source()) {
    number += 1;
    if (manifest !== null) throw refuse('The bundle goes on after its manifest.');
    const line = parseLine(raw, number);
    header ??= checkHeader(line);
    if (line.section === 'manifest') {
      manifest = line;
      continue;
    }
    if (!hashes.add(line.section, raw)) throw refuse('The order of the lines in the bundle was changed.');
    contents.add(line);
  }
  if (header === null) throw refuse('The file is empty.');
  if (manifest === null) throw refuse('The bundle was cut off: its manifest is missing.');
  checkManifest(hashes.manifest(), manifest.data);
  contents.end();
  return { header, definitions: contents.definitions, tools: contents.tools, runs: () => runsOf(source) };
};
