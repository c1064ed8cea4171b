import { tableOf } from './table-of.ts';

export interface SessionRow {
  tenant_id: string;
  id: string;
  agent_name: string;
  owner_id: string | null;
  conversation_id: string;
  /** 0 until the first turn is saved. */
  version: number;
  message_count: number;
  active_run_id: string | null;
  lock_until: number | null;
  last_run_id: string | null;
  created_at: number;
  updated_at: number;
  /** Where a branch came from: provenance only, the parent may be gone. Null for what no branch opened. */
  parent_session_id: string | null;
  parent_conversation_id: string | null;
  /** Last sequence that a branch shares with its parent; -1: none. */
  branch_from_sequence: number | null;
  /** What stands for the beginning of the history in prompts, as JSON. */
  summary: string | null;
  /** Through which protocol another system opened it, and which one; null: none did. */
  door: string | null;
}

/** A run that waits for a session which several processes share, or has waited for the one that it has; it goes as the run ends. */
export interface SessionPlaceRow {
  tenant_id: string;
  session_id: string;
  run_id: string;
  /** 0: before all others, for a run that stops the one in progress; else 1. */
  rank: number;
  /** Of equal ranks the first to come is the next: a number that goes up within the line, and no time. */
  arrived_at: number;
  /** Without a renewal the place is nobody's after this, unless the run has a job that is open. */
  kept_until: number;
}

/** A message of the conversation that wrote it; branches refer to it by `conversation_segments`. */
export interface SessionMessageRow {
  conversation_id: string;
  sequence: number;
  message: string;
}

/** A stretch of the history of a branch that another conversation wrote, under the same sequences. */
interface ConversationSegmentRow {
  conversation_id: string;
  first_sequence: number;
  last_sequence: number;
  source_id: string;
}

/** A conversation whose session is gone. Its row stays as long as a branch still needs some of its messages. */
interface DroppedConversationRow {
  conversation_id: string;
  /** Set while messages may be left that nobody needs; new with every reason to look again. */
  purge_token: string | null;
}

export const sessionTables = {
  sessions: tableOf<SessionRow>(),
  session_places: tableOf<SessionPlaceRow>(),
  session_messages: tableOf<SessionMessageRow>(),
  conversation_segments: tableOf<ConversationSegmentRow>(),
  dropped_conversations: tableOf<DroppedConversationRow>(),
};
