"""`vanilla-transformer push-to-hub`, from a checkout."""

from hf_vanilla_transformer.commands.push_to_hub import main


if __name__ == "__main__":
    main()
