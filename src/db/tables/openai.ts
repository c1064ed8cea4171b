import { tableOf } from './table-of.ts';

/** A response that can be read again, and gone on with. What was said is in the log of its run and in its session. */
export interface OpenAiResponseRow {
  tenant_id: string;
  id: string;
  run_id: string;
  session_id: string;
  /** Null: the session is the response's own. */
  conversation_id: string | null;
  previous_response_id: string | null;
  owner_id: string | null;
  agent_name: string;
  /** JSON. */
  metadata: string;
  /** JSON: what the agent had its model asked with. */
  settings: string;
  created_at: number;
}

/** A conversation that was reserved, or whose metadata was set. */
export interface OpenAiConversationRow {
  tenant_id: string;
  id: string;
  owner_id: string | null;
  /** JSON. */
  metadata: string;
  created_at: number;
}

export const openAiTables = {
  openai_responses: tableOf<OpenAiResponseRow>(),
  openai_conversations: tableOf<OpenAiConversationRow>(),
};
