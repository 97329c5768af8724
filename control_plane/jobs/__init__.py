"""The worker process: seals days, evaluates gates, carries out promotions, closes lost prompts."""
