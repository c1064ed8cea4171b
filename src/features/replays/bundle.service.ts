import { AcpError } from '../../contract/errors.ts';
import type { Frame, FrameSource } from '../../contract/operation.ts';
import type { Handlers } from '../../core/context.ts';
import type { RunAccess } from '../runs/index.ts';
import { type BundleLine, bundleText } from './bundle.format.ts';
import { type BundleDeps, bundleLines } from './bundle-writer.ts';
import type { replayOperations } from './replays.operations.ts';

export interface BundleServiceDeps extends BundleDeps {
  readonly access: Pick<RunAccess, 'find' | 'rootOf'>;
  readonly recordingEnabled: boolean;
  readonly log: { error(fields: Readonly<Record<string, unknown>>, message: string): void };
}

// Bytes of lines that go out together: small lines one by one would cost a packet each.
const batchLength = 65_536;

/** Lines as frames. A failure ends the stream without the manifest, which its reader misses. */
const frameSource = (lines: () => AsyncIterable<BundleLine>, failed: (error: unknown) => void): FrameSource => ({
  subscribe(onFrames, onEnd, drained = () => undefined) {
    let stopped = false;
    const send = async (): Promise<void> => {
      let frames: Frame[] = [];
      let length = 0;
      for await (const data of bundleText(lines())) {
        if (stopped) return;
        frames.push({ event: 'line', data });
        length += data.length;
        if (length < batchLength) continue;
        onFrames(frames);
        frames = [];
        length = 0;
        await drained();
      }
      if (!stopped && frames.length > 0) onFrames(frames);
    };
    void send()
      .catch(failed)
      .then(() => {
        if (!stopped) onEnd();
      });
    return () => {
      stopped = true;
    };
  },
});

export const bundleService = (deps: BundleServiceDeps): Pick<Handlers<typeof replayOperations>, 'bundle'> => ({
  async bundle(context, { params, query }) {
    if (!deps.recordingEnabled)
      throw new AcpError('run-recording-disabled', 'Run bundles need run recording, which is switched off.');
    const { tenantId } = context;
    const rootRunId = await deps.access.rootOf(context, params.runId);
    const members = await deps.records.treeMembers(tenantId, rootRunId);
    const open = members.find((run) => run.status === 'Queued' || run.status === 'Running');
    if (open !== undefined)
      throw new AcpError(
        'run-not-finished',
        `Run ${open.id} is ${open.status}; a bundle is made once a run tree has ended.`,
      );
    // What another system has done is the result of a call, and cannot be done again.
    const own = members.filter(({ isRemote }) => !isRemote);
    const { requestId } = context;
    const stream = frameSource(
      () => bundleLines(deps, { tenantId, rootRunId, members: own, redact: query.redact === true }),
      (error) => deps.log.error({ requestId, runId: rootRunId, error }, 'A run bundle could not be written'),
    );
    return { status: 200, stream, headers: { 'X-Run-Id': rootRunId } };
  },
});
