export const tenantsSweep = async () => true;
