import { type ModelServiceDeps, modelService } from './models.service.ts';

export const modelsFeature = (deps: ModelServiceDeps) => ({ handlers: modelService(deps) });
