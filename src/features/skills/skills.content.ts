import { createHash } from 'node:crypto';
import { canonicalJson } from '../../core/documents/canonical-json.ts';
import type { AgentSkillDefinition, AgentSkillRequest } from './skills.schema.ts';

/** What a skill says, defaults applied; the same for stored and host skills. */
export type SkillContent = Omit<AgentSkillDefinition, 'id' | 'tenantId' | 'version' | 'createdAt' | 'updatedAt'>;

const defaultMediaType = 'text/plain';

export const skillContent = (body: AgentSkillRequest): SkillContent => ({
  name: body.name,
  description: body.description,
  instructions: body.instructions,
  compatibility: body.compatibility ?? null,
  license: body.license ?? null,
  allowedTools: body.allowedTools ?? null,
  metadata: body.metadata ?? {},
  enabled: body.enabled ?? true,
  resources: (body.resources ?? []).map(({ name, description, mediaType, content, encoding }) => ({
    name,
    description: description ?? null,
    mediaType: mediaType ?? defaultMediaType,
    content,
    ...(encoding === undefined ? {} : { encoding }),
  })),
  scripts: (body.scripts ?? []).map(({ name, description, extension, content, parametersSchema }) => ({
    name,
    description: description ?? null,
    extension,
    content,
    parametersSchema: parametersSchema ?? null,
  })),
});

export const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/** Changes with everything that an agent gets of the skill: what compiled agents are remembered by. */
export const skillFingerprint = (id: string, version: number, content: SkillContent): string =>
  sha256(canonicalJson({ id, version, ...content } as never));

const measured = (content: string) => ({ byteSize: Buffer.byteLength(content), sha256: sha256(content) });

/** As the audit trail keeps it: texts of any length by their size and hash. */
export const auditView = (skill: AgentSkillDefinition): object => ({
  ...skill,
  instructions: measured(skill.instructions),
  resources: skill.resources.map(({ content, ...resource }) => ({ ...resource, content: measured(content) })),
  scripts: skill.scripts.map(({ content, ...script }) => ({ ...script, content: measured(content) })),
});
