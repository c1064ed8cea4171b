import { parseDocument, stringify } from 'yaml';
import { isRecord } from '../../contract/record.ts';
import { yamlFault } from '../documents/yaml-fault.ts';

/** The frontmatter of a SKILL.md (agentskills.io). Members beyond these are kept only in the source text. */
export interface SkillFrontmatter {
  readonly name: string;
  readonly description: string;
  readonly license: string | null;
  readonly compatibility: string | null;
  readonly allowedTools: string | null;
  readonly metadata: Readonly<Record<string, string>>;
}

export interface SkillMarkdown {
  readonly frontmatter: SkillFrontmatter;
  /** Everything up to and with the line that closes the frontmatter, as it stands in the file. */
  readonly head: string;
  /** Everything behind it. */
  readonly body: string;
}

/** A SKILL.md that cannot be read; the message names what is wrong and, where it is known, the line. */
export class SkillFileError extends Error {
  override readonly name = 'SkillFileError';
}

const byteOrderMark = '\uFEFF';
const fence = /^---[ \t]*\r?$/;

/** Where the frontmatter ends: offsets of its text and of the body. */
const split = (text: string): { yaml: string; bodyAt: number } => {
  const start = text.startsWith(byteOrderMark) ? 1 : 0;
  let at = text.indexOf('\n', start) + 1;
  if (at === 0 || !fence.test(text.slice(start, at - 1))) throw new SkillFileError('must start with a line of ---');
  const yamlAt = at;
  while (at < text.length) {
    const newline = text.indexOf('\n', at);
    const end = newline === -1 ? text.length : newline;
    const line = text.slice(at, end);
    if (fence.test(line)) return { yaml: text.slice(yamlAt, at), bodyAt: newline === -1 ? text.length : newline + 1 };
    if (newline === -1) break;
    at = newline + 1;
  }
  throw new SkillFileError('has no line of --- that ends its frontmatter');
};

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

const optionalText = (value: unknown): string | null => {
  if (value === undefined || value === null || value === '') return null;
  return textOf(value);
};

/** A text, or a list as some tools write it. */
const allowedTools = (value: unknown): string | null =>
  Array.isArray(value) ? value.map(textOf).join(' ') : optionalText(value);

const readYaml = (yaml: string): Readonly<Record<string, unknown>> => {
  // Every scalar is text here: a version 1.0 stays "1.0".
  const document = parseDocument(yaml, { schema: 'failsafe', prettyErrors: true, logLevel: 'silent' });
  const [failure] = document.errors;
  if (failure !== undefined) {
    // Line 1 of the YAML is line 2 of the file.
    const line = (failure.linePos?.[0].line ?? 0) + 1;
    throw new SkillFileError(`has frontmatter that is not valid YAML, in line ${line}: ${yamlFault(failure)}`);
  }
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: 100 });
  } catch (error) {
    if (!(error instanceof ReferenceError || error instanceof RangeError || error instanceof TypeError)) throw error;
    throw new SkillFileError('has frontmatter with aliases that repeat too much');
  }
  if (!isRecord(value)) throw new SkillFileError('has frontmatter that is no mapping of fields');
  return value;
};

const readMetadata = (value: unknown): Record<string, string> => {
  if (value === undefined || value === null || value === '') return {};
  if (!isRecord(value)) throw new SkillFileError('has metadata that is no mapping');
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, textOf(member)]));
};

/** Takes a SKILL.md apart. Throws SkillFileError; limits and names are the rules' matter. */
export const readSkillMarkdown = (text: string): SkillMarkdown => {
  const { yaml, bodyAt } = split(text);
  const fields = readYaml(yaml);
  for (const name of ['name', 'description'])
    if (typeof fields[name] !== 'string' || fields[name] === '')
      throw new SkillFileError(`has no ${name} in its frontmatter`);
  return {
    frontmatter: {
      name: String(fields['name']),
      description: String(fields['description']),
      license: optionalText(fields['license']),
      compatibility: optionalText(fields['compatibility']),
      allowedTools: allowedTools(fields['allowed-tools']),
      metadata: readMetadata(fields['metadata']),
    },
    head: text.slice(0, bodyAt),
    body: text.slice(bodyAt),
  };
};

/** The frontmatter as this program writes it, closed. */
export const writeFrontmatter = (frontmatter: SkillFrontmatter): string => {
  const { name, description, license, compatibility, allowedTools: tools, metadata } = frontmatter;
  const fields = {
    name,
    description,
    ...(license === null ? {} : { license }),
    ...(compatibility === null ? {} : { compatibility }),
    ...(tools === null ? {} : { 'allowed-tools': tools }),
    ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
  };
  return `---\n${stringify(fields, { lineWidth: 0 })}---\n`;
};
