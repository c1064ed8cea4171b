import type { AttachmentsFeature } from '../features/attachments/index.ts';
import { dataSubjectsFeature } from '../features/data-subjects/index.ts';
import { type RetentionFeature, retentionFeature } from '../features/retention/index.ts';
import type { SessionsFeature } from '../features/sessions/index.ts';
import type { Foundation } from './foundation.ts';

interface RetentionParts {
  readonly base: Foundation['base'];
  readonly modules: Pick<Foundation['modules'], 'archiveSink'>;
  readonly sessions: SessionsFeature;
  readonly attachments: AttachmentsFeature;
  readonly wake: () => void;
}

/** Retention, with what it deletes through other features. */
export const composeRetention = ({ base, modules, sessions, attachments, ...rest }: RetentionParts): RetentionFeature =>
  retentionFeature({
    ...base,
    ...rest,
    archiveSink: modules.archiveSink,
    archiveFolder: base.config.Host.ArchiveFolder,
    removeSession: sessions.removeUnused,
    removeOrphan: attachments.removeOrphan,
    bytesOf: attachments.bytesOf,
    messagesOf: sessions.publicMessages,
  });

type SubjectParts = Pick<RetentionParts, 'base' | 'sessions' | 'attachments'> & {
  readonly modules: Pick<Foundation['modules'], 'dataSubjectResolver'>;
};

/** Export and erasure of one person, with what other features keep. */
export const composeDataSubjects = ({ base, modules, sessions, attachments }: SubjectParts) =>
  dataSubjectsFeature({
    ...base,
    resolver: modules.dataSubjectResolver,
    eraseSessions: sessions.erasure,
    assertReleasable: attachments.assertReleasable,
    releaseBytes: attachments.releaseBytes,
    messagesOf: sessions.publicMessages,
  });
