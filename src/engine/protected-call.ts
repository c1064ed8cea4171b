import type { ModelCall } from '../providers/models/model-provider.ts';
import type { CompiledTarget } from './compiled-binding.ts';
import type { EnginePorts } from './engine-ports.ts';

/** One call of a model: admitted first, and whatever comes of it told to the breaker. */
export const protectedCall = async <T>(
  ports: Pick<EnginePorts, 'protection'>,
  { provider }: CompiledTarget,
  call: ModelCall,
  work: () => Promise<T>,
): Promise<T> => {
  // Every call uses the global credential: there is no owner.
  const admitted = ports.protection.admit(provider.name, null, call.signal);
  const permit = admitted instanceof Promise ? await admitted : admitted;
  try {
    const result = await work();
    permit.succeeded();
    return result;
  } catch (error) {
    permit.failed(error);
    throw error;
  }
};
