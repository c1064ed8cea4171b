import type { Storage } from '../../db/storage.ts';
import { toolUsageStore } from './tool-usage.store.ts';
import { type ToolServiceDeps, toolService } from './tools.service.ts';

export const toolsFeature = ({ storage, ...deps }: Omit<ToolServiceDeps, 'usage'> & { readonly storage: Storage }) => ({
  handlers: toolService({ ...deps, usage: storage.stores(toolUsageStore) }),
});

export { type HostTools, loadHostTools } from './load-host-tools.ts';
