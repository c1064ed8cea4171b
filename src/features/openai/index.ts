import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import { type ChatServiceDeps, chatService } from './chat.service.ts';
import { createGivenMessages } from './given-messages.ts';
import { createGivenFiles, type GivenFileDeps } from './given-parts.ts';
import { type ModelServiceDeps, modelService } from './models.service.ts';
import { createOpenAiTelemetry } from './openai-telemetry.ts';

export interface OpenAiDeps extends Omit<ChatServiceDeps, 'given' | 'telemetry'>, Pick<ModelServiceDeps, 'agents'> {
  readonly files: GivenFileDeps;
  readonly telemetry: Telemetry;
  readonly now: () => number;
  readonly newId: () => string;
}

/** Agents for programs that speak to the OpenAI API. */
export const openAiFeature = (deps: OpenAiDeps) => {
  const given = createGivenMessages({ ...deps, files: createGivenFiles(deps.files) });
  const telemetry = createOpenAiTelemetry(deps.telemetry);
  return {
    models: modelService({ agents: deps.agents, startedAt: deps.now() }),
    chatCompletions: chatService({ ...deps, given, telemetry }),
  };
};
