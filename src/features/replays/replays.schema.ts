import Type, { type Static } from 'typebox';
import { runWarnings } from '../../contract/run-outcome.ts';
import { closed, Int32, JsonValue, nullable, oneOf, Uuid } from '../../contract/schema.ts';
import { runStatuses } from '../runs/runs.schema.ts';

export const toolModes = ['ReplayTools', 'NoTools', 'LiveTools'] as const;
export type ToolMode = (typeof toolModes)[number];

export const RunReplayRequest = closed(
  {
    agentVersion: Type.Optional(
      nullable(Int32(), { description: 'Version of the agent; default: the one that is active now' }),
    ),
    modelId: Type.Optional(
      nullable(Type.String({ minLength: 1, maxLength: 256 }), { description: 'Default: the model of the definition' }),
    ),
    modelProvider: Type.Optional(
      nullable(Type.String({ minLength: 1, maxLength: 128 }), {
        description: 'Default: the provider of the definition',
      }),
    ),
    toolMode: Type.Optional(
      oneOf(toolModes, {
        description:
          'ReplayTools (default) returns the recorded results, NoTools gives the model no tools, LiveTools calls the tools',
      }),
    ),
  },
  { title: 'RunReplayRequest' },
);

export const RunReplayResponse = Type.Object(
  {
    runId: Uuid,
    sourceRunId: Uuid,
    toolMode: oneOf(toolModes),
    agentVersion: nullable(Type.Integer()),
    modelProvider: nullable(Type.String()),
    modelId: nullable(Type.String()),
    status: oneOf(runStatuses),
    output: nullable(Type.String()),
    compareLocation: Type.String({ description: 'Path of the comparison with the source run' }),
    warnings: Type.Optional(
      Type.Array(oneOf(runWarnings), {
        description: 'Work that the store could not do for this run; absent if it did all',
      }),
    ),
  },
  { title: 'RunReplayResponse' },
);
export type RunReplayResponse = Static<typeof RunReplayResponse>;

export const BundleFrame = Type.Object(
  { section: Type.String(), data: JsonValue },
  { title: 'BundleLine', description: 'One line of a run bundle; the section `manifest` is the last one' },
);
