import { createModelHealth, type ModelHealthDeps } from './model-health.ts';
import { type ModelServiceDeps, modelService } from './models.service.ts';

export type { ModelHealth } from './model-health.ts';

export const modelsFeature = (deps: ModelHealthDeps & Pick<ModelServiceDeps, 'allows'>) => {
  const health = createModelHealth(deps);
  return { handlers: modelService({ ...deps, health }), health };
};
