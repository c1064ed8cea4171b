import { parseDocument, stringify } from 'yaml';
import { isRecord } from '../../contract/record.ts';
import { readSkillMarkdown, SkillFileError, type SkillFrontmatter } from './frontmatter.ts';
import { keepSource, sourceHead } from './source-head.ts';

export { SkillFileError } from './frontmatter.ts';

/** A skill as a folder says it; the body of a save has the same members. */
export interface SkillDocument extends SkillFrontmatter {
  readonly instructions: string;
  readonly enabled: boolean;
  readonly resources: readonly ResourceDocument[];
  readonly scripts: readonly ScriptDocument[];
}

export interface ResourceDocument {
  readonly name: string;
  readonly description: string | null;
  readonly mediaType: string;
  readonly content: string;
  /** How the content is written where it is no text. */
  readonly encoding?: 'base64';
}

export interface ScriptDocument {
  readonly name: string;
  readonly description: string | null;
  readonly extension: string;
  readonly content: string;
  readonly parametersSchema: string | null;
}

/** A file of the folder; `path` is relative, with `/`. */
export interface SkillFile {
  readonly path: string;
  readonly text: string;
  /** How the text stands for bytes that are none. */
  readonly encoding?: 'base64';
}

/** The bytes of a file, or of a resource, as they are on a disk. */
export const fileBytes = (text: string, encoding: 'base64' | undefined): Buffer =>
  Buffer.from(text, encoding ?? 'utf8');

export const skillFile = 'SKILL.md';
/** What a SKILL.md has no place for: switch, descriptions, media types, parameters of scripts. */
const sidecarFile = 'acp-skill.yaml';

const mediaTypes: Readonly<Record<string, string>> = {
  md: 'text/markdown',
  html: 'text/html',
  css: 'text/css',
  csv: 'text/csv',
  js: 'text/javascript',
  mjs: 'text/javascript',
  xml: 'application/xml',
  json: 'application/json',
  yaml: 'application/yaml',
  yml: 'application/yaml',
};

const binaryTypes: Readonly<Record<string, string>> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  gif: 'image/gif',
  webp: 'image/webp',
  pdf: 'application/pdf',
  zip: 'application/zip',
  gz: 'application/gzip',
  ttf: 'font/ttf',
  otf: 'font/otf',
  woff2: 'font/woff2',
};

const extensionOf = (path: string): string => /\.([^./]+)$/.exec(path)?.[1] ?? '';
const usualMediaType = (path: string, encoding: 'base64' | undefined): string => {
  const extension = extensionOf(path).toLowerCase();
  return encoding === undefined
    ? (mediaTypes[extension] ?? 'text/plain')
    : (binaryTypes[extension] ?? 'application/octet-stream');
};

/** A script that nothing can run, as what is left of it: a text to be read under the name of its file. */
export const scriptAsResource = (
  script: Pick<ScriptDocument, 'name' | 'extension' | 'description' | 'content'>,
): ResourceDocument => {
  const name = scriptFilePath(script);
  return { name, description: script.description, mediaType: usualMediaType(name, undefined), content: script.content };
};

/** Path of a script in the folder; a name that carries its extension keeps it once. */
export const scriptFilePath = ({ name, extension }: Pick<ScriptDocument, 'name' | 'extension'>): string =>
  name.endsWith(`.${extension}`) ? `scripts/${name}` : `scripts/${name}.${extension}`;

const scriptPath = /^scripts\/([A-Za-z0-9][A-Za-z0-9._-]{0,127})\.([a-z0-9]{1,16})$/;

interface Sidecar {
  readonly enabled?: boolean;
  readonly resources?: Readonly<Record<string, { readonly description?: string; readonly mediaType?: string }>>;
  readonly scripts?: Readonly<
    Record<string, { readonly name?: string; readonly description?: string; readonly parametersSchema?: unknown }>
  >;
}

const sidecarMembers: Readonly<Record<string, readonly string[]>> = {
  resources: ['description', 'mediaType'],
  scripts: ['name', 'description', 'parametersSchema'],
};

const sidecarError = (what: string): SkillFileError => new SkillFileError(`${sidecarFile}: ${what}`);

const checkEntry = (name: string, path: string, about: unknown, fields: readonly string[]): void => {
  if (!isRecord(about)) throw sidecarError(`${name}: ${path} must be a mapping of fields`);
  for (const [field, entry] of Object.entries(about))
    if (!fields.includes(field) || (field !== 'parametersSchema' && typeof entry !== 'string'))
      throw sidecarError(`${name}: ${path}: ${field} is not known or has the wrong type`);
};

const checkSidecar = (value: unknown, paths: ReadonlySet<string>): Sidecar => {
  if (!isRecord(value)) throw sidecarError('must be a mapping of fields');
  for (const [name, member] of Object.entries(value)) {
    if (name === 'enabled' && typeof member === 'boolean') continue;
    const fields = sidecarMembers[name];
    if (fields === undefined || !isRecord(member)) throw sidecarError(`${name} is not known or has the wrong type`);
    for (const [path, about] of Object.entries(member)) {
      if (!paths.has(path)) throw sidecarError(`${name} names ${path}, which is no file of the folder`);
      checkEntry(name, path, about, fields);
    }
  }
  return value as Sidecar;
};

const readSidecar = (text: string | undefined, paths: ReadonlySet<string>): Sidecar => {
  if (text === undefined) return {};
  const document = parseDocument(text, { logLevel: 'silent' });
  if (document.errors.length > 0) throw new SkillFileError(`${sidecarFile}: is not valid YAML`);
  return checkSidecar(document.toJS({ maxAliasCount: 100 }) ?? {}, paths);
};

/** Files right below `scripts/` that can be run by their extension; everything else is there to be read. */
const scriptNames = (files: readonly SkillFile[], sidecar: Sidecar): ReadonlyMap<string, string> => {
  const runnable = files.flatMap(({ path, text, encoding }) => {
    const [, stem, extension] = scriptPath.exec(path) ?? [];
    // An empty file, such as an __init__.py, is nothing to run, and a script is text.
    return stem === undefined || extension === undefined || text === '' || encoding !== undefined
      ? []
      : [{ path, stem }];
  });
  const stems = runnable.map(({ stem }) => stem);
  return new Map(
    runnable.map(({ path, stem }) => {
      const isAlone = stems.indexOf(stem) === stems.lastIndexOf(stem);
      return [path, sidecar.scripts?.[path]?.name ?? (isAlone ? stem : path.slice('scripts/'.length))];
    }),
  );
};

/**
 * The skill that the files of a folder make. Throws SkillFileError where SKILL.md cannot be read; limits are the
 * rules' matter. `notes` say what cannot be given back byte for byte.
 */
export const readSkillFolder = (
  files: readonly SkillFile[],
): { readonly skill: SkillDocument; readonly notes: readonly string[] } => {
  const binary = files.find(({ path, encoding }) => encoding && (path === skillFile || path === sidecarFile));
  if (binary !== undefined) throw new SkillFileError(`${binary.path} is no UTF-8 text.`);
  const byPath = new Map(files.map(({ path, text }) => [path, text]));
  const source = byPath.get(skillFile);
  if (source === undefined) throw new SkillFileError('There is no SKILL.md.');
  const { frontmatter, head, body } = readSkillMarkdown(source);
  const sidecar = readSidecar(byPath.get(sidecarFile), new Set(byPath.keys()));
  const others = files
    .filter(({ path }) => path !== skillFile && path !== sidecarFile)
    .sort((left, right) => (left.path < right.path ? -1 : 1));
  const scripts = scriptNames(others, sidecar);
  const metadata = keepSource(frontmatter, head);
  const skill: SkillDocument = {
    ...frontmatter,
    instructions: body,
    metadata: metadata ?? frontmatter.metadata,
    enabled: sidecar.enabled ?? true,
    resources: others
      .filter(({ path }) => !scripts.has(path))
      .map(({ path, text, encoding }) => ({
        name: path,
        description: sidecar.resources?.[path]?.description ?? null,
        mediaType: sidecar.resources?.[path]?.mediaType ?? usualMediaType(path, encoding),
        content: text,
        ...(encoding === undefined ? {} : { encoding }),
      })),
    scripts: others
      .filter(({ path }) => scripts.has(path))
      .map(({ path, text }) => {
        const schema = sidecar.scripts?.[path]?.parametersSchema;
        return {
          name: scripts.get(path) ?? path,
          description: sidecar.scripts?.[path]?.description ?? null,
          extension: extensionOf(path),
          content: text,
          parametersSchema: schema === undefined ? null : typeof schema === 'string' ? schema : JSON.stringify(schema),
        };
      }),
  };
  const notes = metadata === null ? ['The frontmatter is too long to be given back byte for byte.'] : [];
  return { skill, notes };
};

const definedOnly = (about: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> =>
  Object.fromEntries(Object.entries(about).filter(([, value]) => value !== null && value !== undefined));

/** The sidecar of a skill; null when the folder alone says everything. */
const writeSidecar = (skill: SkillDocument, files: readonly SkillFile[]): string | null => {
  const names = scriptNames(files, {});
  const resources = skill.resources.map(({ name, description, mediaType, encoding }): [string, object] => [
    name,
    definedOnly({ description, mediaType: mediaType === usualMediaType(name, encoding) ? null : mediaType }),
  ]);
  const scripts = skill.scripts.map((script): [string, object] => {
    const path = scriptFilePath(script);
    const { name, description, parametersSchema } = script;
    return [path, definedOnly({ name: names.get(path) === name ? null : name, description, parametersSchema })];
  });
  const said = (entries: readonly [string, object][]) => entries.filter(([, about]) => Object.keys(about).length > 0);
  const sidecar = {
    ...(skill.enabled ? {} : { enabled: false }),
    ...(said(resources).length === 0 ? {} : { resources: Object.fromEntries(said(resources)) }),
    ...(said(scripts).length === 0 ? {} : { scripts: Object.fromEntries(said(scripts)) }),
  };
  return Object.keys(sidecar).length === 0 ? null : stringify(sidecar, { lineWidth: 0 });
};

/** The files of a skill. Throws SkillFileError when a resource has the name of another file of the folder. */
export const writeSkillFolder = (skill: SkillDocument): readonly SkillFile[] => {
  const scripts = skill.scripts.map((script) => ({ path: scriptFilePath(script), text: script.content }));
  const resources = skill.resources.map(
    ({ name, content, encoding }): SkillFile => ({ path: name, text: content, ...(encoding ? { encoding } : {}) }),
  );
  const taken = new Set([skillFile, sidecarFile, ...scripts.map(({ path }) => path)]);
  for (const { path } of resources)
    if (taken.has(path)) throw new SkillFileError(`The resource ${path} has the name of another file of the skill.`);
  const head = sourceHead(skill);
  const sidecar = writeSidecar(skill, [...scripts, ...resources]);
  return [
    { path: skillFile, text: head + skill.instructions },
    ...resources,
    ...scripts,
    ...(sidecar === null ? [] : [{ path: sidecarFile, text: sidecar }]),
  ];
};
