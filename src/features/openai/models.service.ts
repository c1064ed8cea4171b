import { AcpError } from '../../contract/errors.ts';
import { ok } from '../../contract/operation.ts';
import type { Handlers } from '../../core/context.ts';
import type { ExposedModels, KnownAgent } from '../agents/index.ts';
import type { openAiModelOperations } from './openai.operations.ts';
import type { OpenAiModel } from './openai.schema.ts';

export interface ModelServiceDeps {
  readonly agents: {
    list(tenantId: string): Promise<readonly KnownAgent[]>;
    find(tenantId: string, name: string): Promise<KnownAgent | null>;
  };
  readonly exposed: Pick<ExposedModels, 'list' | 'find'>;
  /** Epoch milliseconds: since when agents of code are what they are. */
  readonly startedAt: number;
}

export const modelService = ({
  agents,
  exposed,
  startedAt,
}: ModelServiceDeps): Handlers<typeof openAiModelOperations> => {
  const toModel = (agent: KnownAgent): OpenAiModel => ({
    id: agent.content.name,
    object: 'model',
    created: Math.floor((agent.origin === 'code' ? startedAt : agent.updatedAt) / 1000),
    owned_by: agent.origin,
  });
  const toExposed = ({ name, provider }: ReturnType<typeof exposed.list>[number]): OpenAiModel => ({
    id: name,
    object: 'model',
    created: Math.floor(startedAt / 1000),
    owned_by: provider,
  });
  return {
    async list({ tenantId }) {
      const models = [...(await agents.list(tenantId)).map(toModel), ...exposed.list(tenantId).map(toExposed)];
      return ok({ object: 'list', data: models.sort((a, b) => (a.id < b.id ? -1 : 1)) });
    },
    async get({ tenantId }, { params }) {
      const model = exposed.find(tenantId, params.model);
      if (model !== null) return ok(toExposed(model));
      const agent = await agents.find(tenantId, params.model);
      if (agent === null) throw new AcpError('agent-not-found', `The model "${params.model}" does not exist.`);
      return ok(toModel(agent));
    },
  };
};
