import { type ToolServiceDeps, toolService } from './tools.service.ts';

export const toolsFeature = (deps: ToolServiceDeps) => ({ handlers: toolService(deps) });

export { type HostTools, loadHostTools } from './load-host-tools.ts';
