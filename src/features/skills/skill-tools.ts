import { isRecord } from '../../contract/record.ts';
import type { Json } from '../../contract/schema.ts';
import {
  type BuiltInCall,
  type RegisteredTool,
  registeredTool,
  type ToolContext,
  ToolError,
} from '../../engine/tools/index.ts';
import type { AgentSkill } from './host-skills.ts';

/** One call of `run_skill_script`, the skill already found. */
export interface ScriptCall {
  readonly skill: AgentSkill;
  readonly scriptName: string;
  /** The object that the script reads; null: none was given. */
  readonly args: Json;
  readonly call: BuiltInCall;
  readonly signal: AbortSignal;
}

type Skills = ReadonlyMap<string, AgentSkill>;

const member = (args: Json, name: string): Json => (isRecord(args) ? ((args[name] as Json | undefined) ?? null) : null);

const text = (description: string) => ({ type: 'string', description });

const names = (list: readonly { readonly name: string }[]): string =>
  list.length === 0 ? 'none' : list.map(({ name }) => name).join(', ');

const find = (skills: Skills, args: Json): AgentSkill => {
  const skill = skills.get(String(member(args, 'skillName')));
  if (skill === undefined)
    throw new ToolError(`There is no skill of this name here. Skills: ${names([...skills.values()])}.`);
  return skill;
};

const sourceOf =
  (skills: Skills) =>
  (args: Json): string | null => {
    const name = member(args, 'skillName');
    return typeof name === 'string' && skills.has(name) ? `skill:${name}` : null;
  };

const about = (description: string | null): string => (description === null ? '' : `: ${description}`);

/** What the model gets of a skill it loads: the instructions, and what there is beside them by name. */
const loaded = (skill: AgentSkill, scriptsRun: boolean): string => {
  const sections = [skill.instructions];
  if (skill.resources.length > 0)
    sections.push(
      [
        'Resources, to be read with read_skill_resource:',
        ...skill.resources.map(
          ({ name, description, encoding }) =>
            `- ${name}${about(description)}${encoding === undefined ? '' : ' (no text, for scripts only)'}`,
        ),
      ].join('\n'),
    );
  if (skill.scripts.length > 0)
    sections.push(
      [
        scriptsRun ? 'Scripts, to be run with run_skill_script:' : 'Scripts, which cannot be run here:',
        ...skill.scripts.map(({ name, description, parametersSchema }) => {
          const takes = parametersSchema === null ? 'takes no arguments' : `arguments: ${parametersSchema}`;
          return `- ${name}${about(description)} (${takes})`;
        }),
      ].join('\n'),
    );
  return sections.join('\n\n');
};

const skillName = text('Name of the skill, as listed');

const objectOf = (properties: Record<string, Json>, optional: readonly string[] = []): Json => ({
  type: 'object',
  properties,
  required: Object.keys(properties).filter((name) => !optional.includes(name)),
  additionalProperties: false,
});

const loadSkill = (skills: Skills, scriptsRun: boolean): RegisteredTool =>
  registeredTool(
    {
      name: 'load_skill',
      description: 'Loads the instructions of a skill, with the names of its resources and scripts.',
      inputSchema: objectOf({ skillName }),
      execute: async (args) => loaded(find(skills, args), scriptsRun),
    },
    { kind: 'BuiltIn', sourceOf: sourceOf(skills), resultSource: 'SkillResource' },
  );

const readResource = (skills: Skills): RegisteredTool =>
  registeredTool(
    {
      name: 'read_skill_resource',
      description: 'Reads one resource of a skill.',
      inputSchema: objectOf({ skillName, resourceName: text('Name of the resource, as load_skill gives it') }),
      async execute(args) {
        const skill = find(skills, args);
        const wanted = member(args, 'resourceName');
        const resource = skill.resources.find(({ name }) => name === wanted);
        if (resource === undefined)
          throw new ToolError(`The skill ${skill.name} has no such resource. Resources: ${names(skill.resources)}.`);
        if (resource.encoding !== undefined)
          throw new ToolError(
            `${resource.name} is no text (${resource.mediaType}): only scripts of the skill can use it.`,
          );
        return resource.content;
      },
    },
    { kind: 'BuiltIn', sourceOf: sourceOf(skills), resultSource: 'SkillResource' },
  );

/** What the tool needs of the runner of scripts. */
export interface ScriptTool {
  /** Runs one script to its end and gives its exit code and output. */
  run(call: ScriptCall): Promise<string>;
  /** Throws where the script would be refused anyway, so that nobody is asked in vain. */
  admit(call: ScriptCall): Promise<void>;
}

const runScript = (skills: Skills, scripts: ScriptTool): RegisteredTool => {
  const callOf = (args: Json, { signal }: Pick<ToolContext, 'signal'>, call: BuiltInCall): ScriptCall => ({
    skill: find(skills, args),
    scriptName: String(member(args, 'scriptName')),
    args: member(args, 'arguments'),
    call,
    signal,
  });
  return registeredTool(
    {
      name: 'run_skill_script',
      description: 'Runs one script of a skill and returns its exit code and output.',
      inputSchema: objectOf(
        {
          skillName,
          scriptName: text('Name of the script, as load_skill gives it'),
          arguments: { type: ['object', 'null'], description: 'Arguments of the script, when it takes any' },
        },
        ['arguments'],
      ),
      effect: 'External',
      requiresApproval: true,
    },
    {
      kind: 'BuiltIn',
      // A script has its own time, and waiting for its turn is no part of it.
      ownsTimeout: true,
      sourceOf: sourceOf(skills),
      admit: async (args, context, call) => scripts.admit(callOf(args, context, call)),
      body: async (args, context, call) => scripts.run(callOf(args, context, call)),
    },
  );
};

/** The tools that come with an agent's skills; `scripts` is null where script execution is off. */
export const skillTools = (skills: readonly AgentSkill[], scripts: ScriptTool | null): readonly RegisteredTool[] => {
  if (skills.length === 0) return [];
  const byName = new Map(skills.map((skill) => [skill.name, skill]));
  const hasResources = skills.some(({ resources }) => resources.length > 0);
  const hasScripts = skills.some(({ scripts }) => scripts.length > 0);
  return [
    loadSkill(byName, scripts !== null),
    ...(hasResources ? [readResource(byName)] : []),
    ...(hasScripts && scripts !== null ? [runScript(byName, scripts)] : []),
  ];
};
