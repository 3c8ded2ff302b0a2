//! Language-model providers, registry, retry and the offline model of CrabTalk.
