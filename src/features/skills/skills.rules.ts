import type { FieldError } from '../../contract/errors.ts';
import { fileBytes, scriptFilePath } from '../../core/skill-folder/skill-folder.ts';
import { type FieldProblem, formatPath, inputSchemaProblems } from '../../engine/tools/index.ts';
import type { SkillContent } from './skills.content.ts';

/** Sizes are UTF-8 bytes. */
export interface SkillLimits {
  readonly maxInstructionsBytes: number;
  readonly maxResourceBytes: number;
  readonly maxResources: number;
  readonly maxScriptBytes: number;
  readonly maxScripts: number;
}

const skillName = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;
const segment = /^[A-Za-z0-9._-]+$/;
const scriptName = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
const extension = /^[a-z0-9]{1,16}$/;
// Types whose content is text whatever their family says.
const textType =
  /^(?:text\/[\w.+-]+|application\/(?:json|xml|yaml|x-yaml|toml|sql|javascript|x-sh|[\w.-]+\+(?:json|xml|yaml))|image\/svg\+xml)(?:;\s*[\w-]+=[\w."-]+)*$/i;

const anyType = /^[\w.+-]+\/[\w.+-]+(?:;\s*[\w-]+=[\w."-]+)*$/;

/** Where the host sets each bound. */
const settings = {
  instructionsBytes: 'Service:Skills:MaxInstructionsLength',
  resourceBytes: 'Service:Skills:MaxResourceContentLength',
  resources: 'Service:Skills:MaxResourcesPerSkill',
  scriptBytes: 'Service:Skills:Scripts:MaxScriptContentLength',
  scripts: 'Service:Skills:Scripts:MaxScriptsPerSkill',
} as const;

const longestDescription = 1024;
const mostMetadata = 32;
const mostSchemaBytes = 65_536;

const isSkillName = (name: string): boolean => name.length <= 64 && skillName.test(name);

/** Relative, with `/` between segments, and nothing that leads out of the folder. */
const isResourceName = (name: string): boolean =>
  name.length <= 256 && name.split('/').every((part) => segment.test(part) && part !== '.' && part !== '..');

const isScriptName = (name: string): boolean => scriptName.test(name);
const isScriptExtension = (text: string): boolean => extension.test(text);

// In characters, as JSON Schema counts them.
const lengthOf = (text: string): number => [...text].length;

class Faults {
  readonly all: FieldError[] = [];

  add(path: string, message: string): void {
    this.all.push({ path, message });
  }

  check(isRight: boolean, path: string, message: string): void {
    if (!isRight) this.add(path, message);
  }

  characters(path: string, text: string | null, least: number, most: number): void {
    if (text === null) return;
    const length = lengthOf(text);
    const range = least === 0 ? `at most ${most}` : `${least} to ${most}`;
    this.check(length >= least && length <= most, path, `must have ${range} characters, and has ${length}`);
  }

  /** `setting`: the one that the bound comes from. */
  bytes(path: string, size: number, least: number, most: number, setting: string): void {
    if (size < least) this.add(path, 'must not be empty');
    if (size > most) this.add(path, `must have at most ${most} bytes (${setting}), and has ${size}`);
  }

  /** False when there are too many entries; then they are not looked at one by one. */
  count(path: string, entries: readonly unknown[], most: number, setting?: string): boolean {
    const isFine = entries.length <= most;
    const bound = setting === undefined ? `${most} entries` : `${most} entries (${setting})`;
    this.check(isFine, path, `must have at most ${bound}, and has ${entries.length}`);
    return isFine;
  }
}

const metadataFaults = (faults: Faults, metadata: SkillContent['metadata']): void => {
  const entries = Object.entries(metadata);
  if (!faults.count('metadata', entries, mostMetadata)) return;
  for (const [key, value] of entries) {
    const length = lengthOf(key);
    if (length < 1 || length > 64) faults.add('metadata', 'must have keys of 1 to 64 characters');
    else faults.characters(`metadata.${key}`, value, 0, 1024);
  }
};

const resourceFaults = (faults: Faults, resources: SkillContent['resources'], limits: SkillLimits): void => {
  if (!faults.count('resources', resources, limits.maxResources, settings.resources)) return;
  const names = new Set<string>();
  for (const [index, { name, description, mediaType, content, encoding }] of resources.entries()) {
    const path = `resources[${index}]`;
    const expected = 'must be a relative path: 1 to 256 of A-Za-z0-9._/- without empty, . or .. segments';
    faults.check(isResourceName(name), `${path}.name`, expected);
    faults.check(!names.has(name), `${path}.name`, 'is the name of an earlier resource');
    names.add(name);
    faults.characters(`${path}.description`, description, 0, longestDescription);
    const [type, what] = encoding === undefined ? [textType, 'a media type of text'] : [anyType, 'a media type'];
    faults.check(mediaType.length <= 128 && type.test(mediaType), `${path}.mediaType`, `must be ${what}`);
    const bytes = fileBytes(content, encoding);
    // Node takes what is no base64 for less of it.
    const isRead = encoding === undefined || bytes.toString('base64') === content;
    faults.check(isRead, `${path}.content`, 'must be base64, with padding and without line breaks');
    faults.bytes(`${path}.content`, bytes.length, 0, limits.maxResourceBytes, settings.resourceBytes);
  }
  // As files they would need one name to be a file and a folder.
  for (const [index, { name }] of resources.entries()) {
    const folders = name.split('/').map((_part, depth, parts) => parts.slice(0, depth).join('/'));
    const taken = folders.find((folder) => folder !== '' && names.has(folder));
    if (taken !== undefined) faults.add(`resources[${index}].name`, `lies below ${taken}, which is a resource itself`);
  }
};

const problemOf = (text: string): FieldProblem | undefined => {
  try {
    return inputSchemaProblems(JSON.parse(text))[0];
  } catch (error) {
    if (error instanceof SyntaxError) return { path: [], message: 'is not JSON' };
    // The walk recurses: nobody nests a schema so deeply by hand.
    if (error instanceof RangeError) return { path: [], message: 'is nested too deeply' };
    throw error;
  }
};

const schemaFault = (text: string): string | null => {
  const size = Buffer.byteLength(text);
  if (size > mostSchemaBytes) return `must have at most ${mostSchemaBytes} bytes, and has ${size}`;
  const problem = problemOf(text);
  if (problem === undefined) return null;
  const place = formatPath(problem.path);
  return `must be a JSON Schema of an object: ${place === '' ? '' : `${place} `}${problem.message}`;
};

const scriptFaults = (faults: Faults, scripts: SkillContent['scripts'], limits: SkillLimits): void => {
  if (!faults.count('scripts', scripts, limits.maxScripts, settings.scripts)) return;
  const names = new Set<string>();
  const files = new Set<string>();
  for (const [index, script] of scripts.entries()) {
    const path = `scripts[${index}]`;
    const file = scriptFilePath(script);
    faults.check(
      isScriptName(script.name),
      `${path}.name`,
      'must be 1 to 128 of A-Za-z0-9._- and start with a letter or digit',
    );
    if (names.has(script.name)) faults.add(`${path}.name`, 'is the name of an earlier script');
    else faults.check(!files.has(file), `${path}.name`, `is the file ${file}, like an earlier script`);
    names.add(script.name);
    files.add(file);
    faults.characters(`${path}.description`, script.description, 0, longestDescription);
    faults.check(
      isScriptExtension(script.extension),
      `${path}.extension`,
      'must be 1 to 16 of a-z 0-9, without the dot',
    );
    faults.bytes(`${path}.content`, Buffer.byteLength(script.content), 1, limits.maxScriptBytes, settings.scriptBytes);
    const fault = script.parametersSchema === null ? null : schemaFault(script.parametersSchema);
    if (fault !== null) faults.add(`${path}.parametersSchema`, fault);
  }
};

/** Every fault of a skill, each with the member path where it stands. */
export const skillFaults = (skill: SkillContent, limits: SkillLimits): readonly FieldError[] => {
  const faults = new Faults();
  const expected = 'must be 1 to 64 of a-z 0-9 -, without a hyphen at the start or end, or two in a row';
  faults.check(isSkillName(skill.name), 'name', expected);
  faults.check(skill.description.trim() !== '', 'description', 'must not be blank');
  faults.characters('description', skill.description, 0, longestDescription);
  const size = Buffer.byteLength(skill.instructions);
  faults.bytes('instructions', size, 1, limits.maxInstructionsBytes, settings.instructionsBytes);
  faults.characters('compatibility', skill.compatibility, 1, 500);
  faults.characters('license', skill.license, 0, 256);
  faults.characters('allowedTools', skill.allowedTools, 0, 1024);
  metadataFaults(faults, skill.metadata);
  resourceFaults(faults, skill.resources, limits);
  scriptFaults(faults, skill.scripts, limits);
  return faults.all;
};

/** Scripts that no interpreter of the host could start. */
export const interpreterFaults = (
  scripts: SkillContent['scripts'],
  hasInterpreter: (extension: string) => boolean,
): readonly FieldError[] =>
  scripts.flatMap((script, index) =>
    isScriptExtension(script.extension) && !hasInterpreter(script.extension)
      ? [
          {
            path: `scripts[${index}].extension`,
            message: `is ${script.extension}, which no program of the host runs: Service:Skills:Scripts:Interpreters:${script.extension} must be the absolute path of one`,
          },
        ]
      : [],
  );
