import type { Logger } from '../../core/logger.ts';
import { type DataSubjectResolver, subjectResolution } from './data-subject-resolver.ts';
import { type DataSubjectDeps, dataSubjectService } from './data-subjects.service.ts';

export type { DataSubjectResolver, SubjectIdentity } from './data-subject-resolver.ts';

export interface DataSubjectsDeps extends Omit<DataSubjectDeps, 'resolve'> {
  /** Of a module; null: both operations are refused. */
  readonly resolver: DataSubjectResolver | null;
  readonly log: Pick<Logger, 'error'>;
}

/** Export and erasure of what is stored of one person. */
export const dataSubjectsFeature = ({ resolver, log, ...deps }: DataSubjectsDeps) => ({
  handlers: dataSubjectService({ ...deps, resolve: subjectResolution(resolver, log) }),
});
