import type { Handlers } from '../../core/context.ts';
import type { replayOperations } from './replays.operations.ts';
import { type ReplayServiceDeps, replayService } from './replays.service.ts';

export interface ReplaysFeature {
  readonly handlers: Handlers<typeof replayOperations>;
}

export const replaysFeature = (deps: ReplayServiceDeps): ReplaysFeature => ({ handlers: replayService(deps) });
