import { tableOf } from './table-of.ts';

export interface SkillRow {
  tenant_id: string;
  name: string;
  id: string;
  version: number;
  enabled: number;
  /** Changes with everything that an agent gets of the skill. */
  fingerprint: string;
  created_at: number;
  updated_at: number;
  /** JSON: description, instructions, resources, scripts and the rest. */
  content: string;
}

export interface SkillScriptGrantRow {
  id: string;
  tenant_id: string;
  skill_name: string;
  /** Null: every script of the skill. */
  script_name: string | null;
  granted_by: string | null;
  granted_at: number;
  expires_at: number | null;
  revoked_at: number | null;
}

export const skillTables = {
  skills: tableOf<SkillRow>(),
  skill_script_grants: tableOf<SkillScriptGrantRow>(),
};
