import Type, { type Static } from 'typebox';
import { closed, Int32, nullable, Time, Uuid } from '../../contract/schema.ts';

// Limits and patterns are checked by the skill rules, so that every fault is reported together; the schema only says
// what makes a body unreadable: unknown members and wrong JSON types.
/** Far more than the rules allow, and few enough to report each. */
const mostListed = 10_000;

const text = (description: string) => nullable(Type.String(), { description });

const resource = {
  name: Type.String({ description: 'Relative path, 1 to 256 of `A-Za-z0-9._/-`' }),
  content: Type.String({ description: 'May be empty' }),
  encoding: Type.Optional(
    Type.Literal('base64', { description: 'Content that is no text: bytes for scripts, which no model reads' }),
  ),
};
const script = {
  name: Type.String({ description: '`[A-Za-z0-9][A-Za-z0-9._-]{0,127}`' }),
  extension: Type.String({ description: '`[a-z0-9]{1,16}`, without the dot' }),
  content: Type.String(),
};
const scriptSchema = () => text('JSON Schema object as text; null: the script takes no arguments');

const SkillResourceRequest = closed({
  ...resource,
  description: Type.Optional(text('At most 1024 characters')),
  mediaType: Type.Optional(Type.String({ description: 'A text type unless there is an encoding; default text/plain' })),
});
const SkillScriptRequest = closed({
  ...script,
  description: Type.Optional(text('At most 1024 characters')),
  parametersSchema: Type.Optional(scriptSchema()),
});

/** The whole skill: what is left out is removed. */
export const AgentSkillRequest = closed(
  {
    name: Type.String({ description: '1 to 64 of a-z 0-9 -, no hyphen first, last or doubled; the name of the path' }),
    description: Type.String({ description: '1 to 1024 characters: what the skill does and when to use it' }),
    instructions: Type.String({ description: 'Markdown, at most Skills:MaxInstructionsLength bytes' }),
    compatibility: Type.Optional(text('1 to 500 characters')),
    license: Type.Optional(text('At most 256 characters')),
    allowedTools: Type.Optional(text('Kept as given; it allows nothing')),
    metadata: Type.Optional(
      Type.Record(Type.String(), Type.String(), { maxProperties: 32, description: 'At most 32 entries' }),
    ),
    enabled: Type.Optional(Type.Boolean({ description: 'Default true; false hides the skill from every model' })),
    resources: Type.Optional(Type.Array(SkillResourceRequest, { maxItems: mostListed })),
    scripts: Type.Optional(Type.Array(SkillScriptRequest, { maxItems: mostListed })),
  },
  { title: 'AgentSkillRequest' },
);
export type AgentSkillRequest = Static<typeof AgentSkillRequest>;

const AgentSkillResourceDefinition = Type.Object(
  { ...resource, description: text('What it holds'), mediaType: Type.String() },
  { title: 'AgentSkillResourceDefinition' },
);

export const AgentSkillScriptDefinition = Type.Object(
  { ...script, description: text('What it does'), parametersSchema: scriptSchema() },
  { title: 'AgentSkillScriptDefinition' },
);
export type AgentSkillScriptDefinition = Static<typeof AgentSkillScriptDefinition>;

export const AgentSkillDefinition = Type.Object(
  {
    id: Uuid,
    tenantId: Type.String(),
    name: Type.String(),
    description: Type.String(),
    instructions: Type.String(),
    compatibility: text('Where it works'),
    license: text('Its license'),
    allowedTools: text('Kept as given'),
    metadata: Type.Record(Type.String(), Type.String()),
    enabled: Type.Boolean(),
    version: Int32(),
    resources: Type.Array(AgentSkillResourceDefinition),
    scripts: Type.Array(AgentSkillScriptDefinition),
    createdAt: Time,
    updatedAt: Time,
  },
  { title: 'AgentSkillDefinition' },
);
export type AgentSkillDefinition = Static<typeof AgentSkillDefinition>;
