import type { Handlers } from '../../core/context.ts';
import { createModelHealth, type ModelHealth, type ModelHealthDeps } from './model-health.ts';
import type { modelOperations } from './models.operations.ts';
import { type ModelServiceDeps, modelService } from './models.service.ts';

export type { ModelHealth } from './model-health.ts';

export const modelsFeature = (
  deps: ModelHealthDeps & Pick<ModelServiceDeps, 'allows'>,
): { readonly handlers: Handlers<typeof modelOperations>; readonly health: ModelHealth } => {
  const health = createModelHealth(deps);
  return { handlers: modelService({ providers: deps.providers, health, allows: deps.allows }), health };
};
