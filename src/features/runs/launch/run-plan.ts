import type { RunPlan } from '../../../engine/active-run.ts';

type Own =
  | 'id'
  | 'tenantId'
  | 'requestId'
  | 'agent'
  | 'parameters'
  | 'principal'
  | 'userId'
  | 'ownerId'
  | 'labels'
  | 'createdAt';

/** What every run has of its own, and what makes it another than a plain run without a session that begins now. */
export type PlanParts = Pick<RunPlan, Own> & Partial<Omit<RunPlan, Own>>;

const none: readonly never[] = [];

/** What only a request of another API has, and what only another system does. */
const outside = ({ given, asked, asksNobody, opening, remote }: PlanParts) => ({
  remote: remote ?? null,
  given: given ?? null,
  asked: asked ?? null,
  asksNobody: asksNobody ?? false,
  opening: opening ?? none,
});

/** What only a run has that goes on from somewhere, or repeats another one. */
const continued = ({ resume, resources, continuedFromRunId, replay }: PlanParts) => ({
  resume: resume ?? null,
  resources: resources ?? null,
  continuedFromRunId: continuedFromRunId ?? null,
  replay: replay ?? null,
});

/** The one place where a plan is made, so that every run has every member. */
export const runPlan = (of: PlanParts): RunPlan => ({
  id: of.id,
  tenantId: of.tenantId,
  requestId: of.requestId,
  kind: of.kind ?? 'Agent',
  agent: of.agent,
  message: of.message ?? null,
  documents: of.documents ?? none,
  attachments: of.attachments ?? none,
  culture: of.culture ?? null,
  parameters: of.parameters,
  sessionId: of.sessionId ?? null,
  session: of.session ?? null,
  waiting: of.waiting ?? null,
  isStreaming: of.isStreaming ?? false,
  principal: of.principal,
  userId: of.userId,
  ownerId: of.ownerId,
  labels: of.labels,
  job: of.job ?? null,
  createdAt: of.createdAt,
  nextSequence: of.nextSequence ?? 0,
  ...continued(of),
  ...outside(of),
  unrecordedCount: of.unrecordedCount ?? null,
  isUnchecked: of.isUnchecked ?? false,
  parent: of.parent ?? null,
  parentCallId: of.parentCallId ?? null,
  limits: of.limits ?? null,
  trace: of.trace ?? null,
});
