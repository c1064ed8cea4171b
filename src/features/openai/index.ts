import type { Config } from '../../core/config/schema.ts';
import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import type { Storage } from '../../db/storage.ts';
import type { SessionsFeature } from '../sessions/index.ts';
import { type ChatServiceDeps, chatService } from './chat.service.ts';
import { type ConversationServiceDeps, conversationService } from './conversations.service.ts';
import { type EmbeddingServiceDeps, embeddingService } from './embeddings.service.ts';
import { createGivenMessages } from './given-messages.ts';
import { createGivenFiles, type GivenFileDeps } from './given-parts.ts';
import type { ItemRules } from './items.ts';
import { createKeptResponses, type KeptResponseDeps } from './kept-responses.ts';
import { type ModelServiceDeps, modelService } from './models.service.ts';
import { createOpenAiTelemetry } from './openai-telemetry.ts';
import { createResponseReferences } from './response-references.ts';
import { createResponseSources } from './response-sources.ts';
import { responseStart } from './response-start.service.ts';
import { type ResponseServiceDeps, responseService } from './responses.service.ts';
import { responseStore } from './responses.store.ts';

export interface OpenAiDeps
  extends Omit<ChatServiceDeps, 'given' | 'telemetry'>,
    Omit<EmbeddingServiceDeps, 'telemetry'>,
    Pick<ModelServiceDeps, 'agents' | 'exposed'>,
    Pick<ConversationServiceDeps, 'authorization'>,
    Omit<ResponseServiceDeps, 'kept' | 'items' | 'sessions'>,
    Omit<KeptResponseDeps, 'store' | 'sessions'> {
  readonly config: Config;
  readonly storage: Storage;
  readonly sessions: Pick<SessionsFeature, 'store' | 'access' | 'remove' | 'fork'>;
  readonly files: GivenFileDeps;
  readonly runsOnClient: ItemRules['runsOnClient'];
  readonly serverOf: ItemRules['serverOf'];
  readonly telemetry: Telemetry;
  readonly now: () => number;
  readonly newId: () => string;
}

/** Agents for programs that speak to the OpenAI API. */
export const openAiFeature = (deps: OpenAiDeps) => {
  const { storage, sessions } = deps;
  const { Host, Service } = deps.config;
  const store = storage.stores(responseStore);
  const items = { runsOnClient: deps.runsOnClient, serverOf: deps.serverOf };
  const kept = createKeptResponses({ ...deps, store });
  const base = {
    ...deps,
    store,
    kept,
    given: createGivenMessages({ ...deps, files: createGivenFiles(deps.files) }),
    telemetry: createOpenAiTelemetry(deps.telemetry),
    items,
  };
  return {
    models: modelService({ agents: deps.agents, exposed: deps.exposed, startedAt: deps.now() }),
    chatCompletions: chatService(base),
    embeddings: embeddingService(base),
    responses: {
      ...responseService(base),
      ...responseStart({
        ...base,
        sources: createResponseSources({ store, sessions }),
        referred: createResponseReferences({ kept, items }),
        conversations: Host.OpenAi.Conversations,
        recordingEnabled: Service.RunRecording.Enabled,
        async removeFork(tenantId, sessionId) {
          const row = await sessions.store.get(tenantId, sessionId);
          if (row !== undefined) await sessions.remove(row);
        },
      }),
    },
    conversations: conversationService({
      ...base,
      persistent: storage.persistent,
      enabled: Host.OpenAi.Conversations,
    }),
  };
};
