import { ok } from '../../contract/operation.ts';
import type { Handlers } from '../../core/context.ts';
import type { RegisteredTool, ToolRegistry } from '../../engine/tools/registry.ts';
import type { toolOperations } from './tools.operations.ts';
import type { ToolDescriptor } from './tools.schema.ts';

const describe = ({ descriptor }: RegisteredTool): ToolDescriptor => ({ ...descriptor });

export interface ToolServiceDeps {
  readonly tools: Pick<ToolRegistry, 'list'>;
}

export const toolService = ({ tools }: ToolServiceDeps): Handlers<typeof toolOperations> => {
  // The registry is fixed until restart.
  const descriptors = tools.list().map(describe);
  return {
    async list() {
      return ok(descriptors);
    },
  };
};
